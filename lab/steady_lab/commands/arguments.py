# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options and types of values that subcommands share; an error names what is allowed."""

import argparse
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT


def add_build_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--build`, where figures are run and their results are kept."""
    parser.add_argument(
        "--build", type=Path, default=BUILD, metavar="DIR", help="directory of the results [build]"
    )


def project_file(text: str) -> Path:
    """Return a file of this folder, else of the project's: who installed a wheel has no clone."""
    path = Path(text)
    return path if path.exists() else PROJECT / path


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return value


def random_seed(text: str) -> int:
    """Return a whole number of 64 bits."""
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 to {2**64 - 1}")
    return value


def seconds(text: str) -> float:
    """Return a time above zero, in seconds."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0 s")
    return value
