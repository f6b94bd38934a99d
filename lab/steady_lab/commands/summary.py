# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab summary` prints figures' tables; `steady-lab readme` writes them into a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.commands.arguments import add_build_argument
from steady_lab.figures.spec import load_figures
from steady_lab.pages.blocks import fill_blocks
from steady_lab.pages.summary import figure_summary
from steady_lab.paths import PROJECT


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `summary` and `readme`."""
    summary = subparsers.add_parser("summary", help="print figure tables, checks and conclusions")
    summary.add_argument("figures", nargs="+", metavar="FIGURE", help="name or file of a figure")
    add_build_argument(summary)
    summary.set_defaults(func=_summary)
    readme = subparsers.add_parser("readme", help="update the figure tables in a Markdown file")
    readme.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=PROJECT / "README.md",
        metavar="FILE",
        help="Markdown file with figure marks [README.md]",
    )
    add_build_argument(readme)
    readme.add_argument(
        "--check", action="store_true", help="only check whether the tables are up to date"
    )
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
