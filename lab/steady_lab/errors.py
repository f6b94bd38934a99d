# SPDX-License-Identifier: MIT OR Apache-2.0
"""The base class of errors that a user can mend; `steady-lab` prints them without traceback."""


class LabError(Exception):
    """What was wrong, with which value, and what to do about it."""
