# SPDX-License-Identifier: MIT OR Apache-2.0
"""The pages on measured results, from committed records.

A page is a Markdown file with blocks (blocks.py). `steady-lab results` takes the results of
`steady-lab run` into docs/results/records/ (records.py), and writes the pages' blocks and the
pictures next to them from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.results import read_result
from steady_lab.figures.spec import Figure, load_figures
from steady_lab.kernels.source import RELEASES, release_folder
from steady_lab.pages.blocks import figures_on, fill_blocks
from steady_lab.pages.matrix import heat_map_svg
from steady_lab.pages.picture import column_svg
from steady_lab.pages.plot import plot_data
from steady_lab.pages.published import panel_name
from steady_lab.pages.records import read_record, write_provenance, write_record
from steady_lab.pages.spans_picture import spans_svg
from steady_lab.paths import PROJECT

RECORDS = PROJECT / "docs" / "results" / "records"
PAGES = (
    PROJECT / "README.md",
    *(
        PROJECT / "docs" / "results" / f"{name}.md"
        for name in (
            *("s1", "s4", "s5", "lookahead", "rivals", "k2-ssd"),
            *("busy-task", "chario", "papers", "reports", "zoo"),
        )
    ),
    *(PROJECT / "docs" / "guides" / f"{name}.md" for name in ("choosing-knobs", "fairness")),
    PROJECT / "docs" / "devices.md",
)
SWEEP = 0  # of the report's columns


@dataclass(frozen=True)
class Picture:
    """An SVG file: one column of the report's plots over all panels of a figure."""

    file: Path
    figure: str
    column: int


PICTURES = (
    Picture(PROJECT / "docs" / "results" / "s1-fig5.svg", "s1-fig5", SWEEP),
    Picture(PROJECT / "docs" / "guides" / "knobs-latency.svg", "knobs", SWEEP),
)
# Figures whose panels are devices.
MATRIX_PICTURES = {PROJECT / "docs" / "results" / "zoo.svg": "zoo"}
# Traced loads, by the name of their spec.
SPANS_PICTURES = {PROJECT / "docs" / "results" / "s5-spans.svg": "s5"}


def take_records(build: Path, records: Path) -> None:
    """Copy what a build folder has of the pages' figures; the others stay as they are recorded.

    `records` is for the first release, those of the others are next to it. Raises LabError, also if
    the folder has none of the figures, and OSError.
    """
    taken = [
        _take_release(
            release,
            release_folder(build, release) / "results",
            release_folder(records.parent, release) / records.name,
        )
        for release in RELEASES
    ]
    if not any(taken):
        raise LabError(f"{build}: has none of the pages' figures; run: steady-lab run FIGURE")


def _take_release(release: str, results: Path, records: Path) -> int:
    """Copy the figures of one release, and return how many there were."""
    taken = {}
    for figure in _figures(release):
        file = results / f"{figure.name}.json"
        if not file.exists():
            print(f"{figure.name}: not in {results}, stays as recorded")
            continue
        taken[figure.name] = read_result(file)
        write_record(figure, taken[figure.name], records)
    if taken:
        write_provenance(taken, records)
    return len(taken)


def make_all(records: Path) -> dict[Path, str]:
    """Return every page and picture as the records give it; raises LabError."""
    made = {page: fill_blocks(page.read_text(encoding="utf-8"), records) for page in PAGES}
    for picture in PICTURES:
        plots = [
            (panel_name(figure), plot_data(figure, read_record(figure, records)))
            for figure in load_figures(picture.figure)
        ]
        made[picture.file] = column_svg(plots, picture.column)
    for file, name in MATRIX_PICTURES.items():
        panels = [(figure, read_record(figure, records).measured) for figure in load_figures(name)]
        made[file] = heat_map_svg(panels)
    for file, name in SPANS_PICTURES.items():
        made[file] = spans_svg(name, records)
    return made


def _figures(release: str) -> list[Figure]:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    names = [name for text in texts for name in figures_on(text, release)]
    figures = [figure for name in names for figure in load_figures(name)]
    return list({figure.name: figure for figure in figures}.values())
