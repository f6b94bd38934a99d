# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab summary` prints what figures found; `steady-lab readme` keeps README.md true.

Both read the CSV that `steady-lab run` wrote: no number in a table or a sentence is typed.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path

from steady_lab.figure_spec import Figure, load_figures
from steady_lab.page_blocks import fill_blocks
from steady_lab.paths import BUILD, PROJECT
from steady_lab.rows import read_csv
from steady_lab.table import figure_tables, summary_text

NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Relative, and absolute for numbers near zero: as wide as the tightest check of a figure.
TOLERANCE = 0.05


def figure_summary(figure: Figure, results: Path) -> str:
    """Return tables and sentences of a figure, from its CSV in `results`."""
    measured = read_csv(results / f"{figure.name}.csv")
    parts = [
        figure.title,
        *(table.text() for table in figure_tables(figure, measured)),
        summary_text(figure, measured),
    ]
    return "\n\n".join(parts)


def is_current(old: str, new: str) -> bool:
    """Tell whether two texts differ only in numbers, and in those by no more than the tolerance.

    What else is installed on a machine shifts the guest's clock reads, and latencies with them, by
    steps of 256 ns (ARCHITECTURE.md, current problems), and now and then a table's last digit.
    """
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(
        math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs
    )


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `summary` and `readme`."""
    summary = subparsers.add_parser("summary", help="print what figures found, and what it means")
    summary.add_argument("figures", nargs="+", metavar="FIGURE", help="name or file of a figure")
    summary.add_argument("--build", type=Path, default=BUILD, help="folder of results and report")
    summary.set_defaults(func=_summary)
    readme = subparsers.add_parser("readme", help="write the figures' tables into a Markdown file")
    readme.add_argument("file", nargs="?", type=Path, default=PROJECT / "README.md")
    readme.add_argument("--build", type=Path, default=BUILD, help="folder of results and report")
    readme.add_argument(
        "--check", action="store_true", help="only tell whether it is up to date, within 5 %%"
    )
    readme.set_defaults(func=_readme)


def _summary(args: argparse.Namespace) -> int:
    for figure in [figure for name in args.figures for figure in load_figures(name)]:
        print(figure_summary(figure, args.build / "results"), end="\n\n")
    return 0


def _readme(args: argparse.Namespace) -> int:
    old = args.file.read_text(encoding="utf-8")
    new = fill_blocks(old, args.build / "results")
    if new == old or (args.check and is_current(old, new)):
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
