# SPDX-License-Identifier: MIT OR Apache-2.0
"""User errors; `steady-lab` prints them without traceback."""


class LabError(Exception):
    """An error for the user: the fault, the value, and the fix."""


class SpecError(LabError):
    """A spec that cannot be used. The text names file, key, value and valid values."""
