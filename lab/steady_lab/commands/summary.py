# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab summary` prints what figures found; `steady-lab readme` keeps README.md true."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.figures.spec import load_figures
from steady_lab.pages.blocks import fill_blocks
from steady_lab.pages.summary import figure_summary
from steady_lab.paths import BUILD, PROJECT


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `summary` and `readme`."""
    summary = subparsers.add_parser("summary", help="print what figures found, and what it means")
    summary.add_argument("figures", nargs="+", metavar="FIGURE", help="name or file of a figure")
    summary.add_argument("--build", type=Path, default=BUILD, help="folder of results and report")
    summary.set_defaults(func=_summary)
    readme = subparsers.add_parser("readme", help="write the figures' tables into a Markdown file")
    readme.add_argument("file", nargs="?", type=Path, default=PROJECT / "README.md")
    readme.add_argument("--build", type=Path, default=BUILD, help="folder of results and report")
    readme.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    readme.set_defaults(func=_readme)


def _summary(args: argparse.Namespace) -> int:
    for figure in [figure for name in args.figures for figure in load_figures(name)]:
        print(figure_summary(figure, args.build / "results"), end="\n\n")
    return 0


def _readme(args: argparse.Namespace) -> int:
    old = args.file.read_text(encoding="utf-8")
    new = fill_blocks(old, args.build / "results")
    if new == old:
        print(f"{args.file}: up to date")
        return 0
    if args.check:
        print(
            f"{args.file}: tables differ from the results; run: steady-lab readme", file=sys.stderr
        )
        return 1
    args.file.write_text(new, encoding="utf-8")
    print(f"{args.file}: tables written")
    return 0
