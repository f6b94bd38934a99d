# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types of command line values, for argparse: a bad value is named with what is allowed."""

import argparse


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return value


def random_seed(text: str) -> int:
    """Return a whole number of 64 bits."""
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{text}: a number in 0..{2**64 - 1} is needed")
    return value


def seconds(text: str) -> float:
    """Return a time above zero, in seconds."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: a time above 0 s is needed")
    return value
