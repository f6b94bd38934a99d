# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab results`: write the pages of measured results, or check that they are current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.figures.results import write_atomically
from steady_lab.pages.blocks import print_block
from steady_lab.pages.results import RECORDS, make_all, take_records
from steady_lab.paths import BUILD


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `results`."""
    parser = subparsers.add_parser(
        "results",
        help="write docs/results from the committed records, or from new results",
        description="Writes the pages and pictures in docs/results from docs/results/records.",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--build",
        type=Path,
        nargs="?",
        const=BUILD,
        metavar="DIR",
        help="first copy the results in the build directory DIR into the records [build]",
    )
    source.add_argument(
        "--check", action="store_true", help="only check whether pages and pictures are up to date"
    )
    source.add_argument(
        "--print",
        metavar="KIND:NAME",
        dest="block",
        help="print a table of the records instead, such as panels:s1-fig2, claims:s1-fig5, "
        "'panels:chardisk kernel:6.12' or costs:streams[none,k2-440us]",
    )
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    if args.block:
        print(print_block(args.block, RECORDS))
        return 0
    if args.build:
        take_records(args.build, RECORDS)
    made = make_all(RECORDS)
    stale = [path for path, text in made.items() if _text(path) != text]
    for path in stale:
        if args.check:
            print(f"{path}: differs from the records; run: steady-lab results", file=sys.stderr)
        else:
            write_atomically(path, made[path])
            print(f"{path}: written")
    if not stale:
        print(f"{len(made)} pages and pictures: up to date")
    return 1 if stale and args.check else 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
