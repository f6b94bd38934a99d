# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab results`: the pages on measured results, from committed records.

A page is a Markdown file with blocks (page_blocks.py). The command takes the results of
`steady-lab run` into docs/results/records/ (records.py), and writes the pages' blocks and the
pictures next to them from there; `--check` only tells whether they are what the records give.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figure_spec import Figure, load_figures
from steady_lab.page_blocks import figures_on, fill_blocks
from steady_lab.paths import BUILD, PROJECT
from steady_lab.records import read_record, write_provenance, write_record
from steady_lab.report_plot import plot_data
from steady_lab.results import read_result, write_atomically
from steady_lab.svg_plot import column_svg

RECORDS = PROJECT / "docs" / "results" / "records"
PAGES = (
    PROJECT / "docs" / "results" / "s1.md",
    PROJECT / "docs" / "guides" / "choosing-knobs.md",
)
SWEEP, COST, CCDF = range(3)


@dataclass(frozen=True)
class Picture:
    """An SVG file: one column of the report's plots over all panels of a figure."""

    file: Path
    figure: str
    column: int


PICTURES = (
    *(
        Picture(PROJECT / "docs" / "results" / f"{name}.svg", name, SWEEP)
        for name in ("s1-fig2", "s1-fig2-writes", "s1-fig5", "s1-fig7")
    ),
    Picture(PROJECT / "docs" / "results" / "s1-fig6.svg", "s1-fig5", CCDF),
    Picture(PROJECT / "docs" / "results" / "s1-table3-throughput.svg", "s1-table3", COST),
    Picture(PROJECT / "docs" / "guides" / "knobs-latency.svg", "knobs", SWEEP),
    Picture(PROJECT / "docs" / "guides" / "knobs-background.svg", "knobs", COST),
)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `results`."""
    parser = subparsers.add_parser(
        "results",
        help="take results into docs/results/records and write the pages made of them",
        description="Without --build or --check: write pages and pictures from the records.",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--build",
        type=Path,
        nargs="?",
        const=BUILD,
        metavar="DIR",
        help="first take those of the pages' figures that this build folder has into the records",
    )
    source.add_argument(
        "--check", action="store_true", help="only tell whether pages and pictures are up to date"
    )
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    if args.build:
        take_records(args.build / "results", RECORDS)
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


def take_records(results: Path, records: Path) -> None:
    """Copy what `results` has of the pages' figures; the others stay as they are recorded.

    Raises LabError, also if it has none of them, and OSError.
    """
    taken = {}
    for figure in _figures():
        file = results / f"{figure.name}.json"
        if not file.exists():
            print(f"{figure.name}: not in {results}, stays as recorded")
            continue
        taken[figure.name] = read_result(file)
        write_record(figure, taken[figure.name], records)
    if not taken:
        raise LabError(f"{results}: has none of the pages' figures; run: steady-lab run FIGURE")
    write_provenance(taken, records)


def make_all(records: Path) -> dict[Path, str]:
    """Return every page and picture as the records give it; raises LabError."""
    made = {page: fill_blocks(page.read_text(encoding="utf-8"), records) for page in PAGES}
    for picture in PICTURES:
        plots = [
            (figure.title.rsplit(": ", 1)[-1], plot_data(figure, read_record(figure, records)))
            for figure in load_figures(picture.figure)
        ]
        made[picture.file] = column_svg(plots, picture.column)
    return made


def _figures() -> list[Figure]:
    names = [name for page in PAGES for name in figures_on(page.read_text(encoding="utf-8"))]
    figures = [figure for name in names for figure in load_figures(name)]
    return list({figure.name: figure for figure in figures}.values())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
