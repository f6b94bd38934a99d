# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options and types of values that subcommands share; an error names the valid values."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from steady_lab.devices.names import device_file
from steady_lab.errors import SpecError
from steady_lab.paths import BUILD

Number = TypeVar("Number", int, float)


def add_build_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--build`, where figures are run and their results are kept."""
    parser.add_argument(
        "--build",
        type=directory,
        default=BUILD,
        metavar="DIR",
        help="directory of the results [build]",
    )


def device(text: str) -> Path:
    """Return the spec of an emulated device, by its name or path."""
    try:
        return device_file(text)
    except SpecError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def directory(text: str) -> Path:
    """Return a directory that exists, or that can be made."""
    path = Path(text)
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: {there} is a file: must be a directory")
    return path


def new_file(text: str) -> Path:
    """Return a file whose directory exists, so that long work is not lost."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: must be a file in a directory that exists")
    return path


def _number(text: str, read: Callable[[str], Number], allowed: str) -> Number:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: must be {allowed}") from error


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    value = _number(text, int, "a whole number of at least 1")
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return value


def random_seed(text: str) -> int:
    """Return a whole number of 64 bits."""
    value = _number(text, int, f"a whole number, 0 to {2**64 - 1}")
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 to {2**64 - 1}")
    return value


def seconds(text: str) -> float:
    """Return a time above zero, in seconds."""
    value = _number(text, float, "a time in seconds, such as 1.5")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0 s")
    return value
