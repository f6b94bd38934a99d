# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab: kernels in virtual time, emulated storage, experiments and their report."""

__version__ = "0.1.0"
