# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ours next to the published values: ratio, and the reason where it is far from 1.

On a page a ratio outside of NEAR without a `reason` in the figure's spec is an error, so every
difference is explained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.errors import LabError
from steady_lab.figures.checks import CheckResult
from steady_lab.figures.rows import Measurements, point_text
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import format_number, with_unit

NEAR = (0.8, 1.25)
MATRIX_MIN = 9  # more published values of one panel than this make a matrix instead of a list


@dataclass(frozen=True)
class Compared:
    """One published value and ours."""

    what: str
    row: str
    column: str
    published: str
    ours: str
    unit: str
    ratio: float
    where: str
    reason: str

    @property
    def far(self) -> bool:
        """Tell whether the ratio needs a reason."""
        return not NEAR[0] <= self.ratio <= NEAR[1]

    @property
    def deviation(self) -> str:
        """Return how far ours is from the published value, where that is not 0."""
        return f"{100 * (self.ratio - 1):+.0f} %" if math.isfinite(self.ratio) else "–"


def compare(figure: Figure, measured: Measurements) -> list[Compared]:
    """Return all published values of a figure next to ours."""
    found = []
    for item in figure.published:
        ours = item.cell.evaluate(measured)
        title = figure.workload.title_of(item.cell.variant)
        at = point_text(item.cell.point)
        found.append(
            Compared(
                what=f"{title}{f' at {at}' if at else ''}: {item.cell.metric.label}",
                row=title,
                column=f"{at} KiB: {item.cell.metric.label}, {item.cell.unit}",
                published=f"{item.value:g}",
                ours=format_number(ours),
                unit=item.cell.unit,
                ratio=ours / item.value if item.value else math.inf,
                where=item.where,
                reason=item.reason,
            )
        )
    return found


def _refuse_unexplained(figure: Figure, found: list[Compared]) -> None:
    missing = [item for item in found if item.far and not item.reason]
    if missing:
        lines = [f"  {item.what}: {item.ours} / {item.published}" for item in missing]
        raise LabError(
            f"{figure.name}: [[published]] needs a `reason` where ours / published is not "
            f"{NEAR[0]:g} to {NEAR[1]:g}:\n" + "\n".join(lines)
        )


def published_markdown(panels: Sequence[tuple[Figure, Measurements]]) -> str:
    """Return the comparison of all panels: a list, or a matrix per panel where there are many.

    Raises LabError for a reason that is missing.
    """
    parts, listed = [], []
    for figure, measured in panels:
        found = compare(figure, measured)
        _refuse_unexplained(figure, found)
        if len(found) > MATRIX_MIN:
            parts.append(_matrix(figure, found))
        else:
            listed += [(figure, item) for item in found]
    if listed:
        parts.insert(0, _list(listed))
    return "\n\n".join(parts)


def _list(listed: list[tuple[Figure, Compared]]) -> str:
    lines = [
        "| panel | what | published | here | ratio | why |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for figure, item in listed:
        why = f"{item.reason} ({item.where})" if item.far else item.where
        lines.append(
            f"| {panel_name(figure)} | {item.what} | {item.published} | {item.ours} "
            f"| {item.ratio:.2f} | {why} |"
        )
    return "\n".join(lines)


def _matrix(figure: Figure, found: list[Compared]) -> str:
    """Return rows of variants, each cell ours / published = ratio; reasons in notes below."""
    columns = list(dict.fromkeys(item.column for item in found))
    reasons = list(dict.fromkeys(item.reason for item in found if item.far))
    cells = {(item.row, item.column): item for item in found}
    lines = [
        f"**{panel_name(figure).capitalize()}** (here / published = ratio)",
        "",
        f"| | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * len(columns)}",
    ]
    for row in dict.fromkeys(item.row for item in found):
        texts = [_cell(cells.get((row, column)), reasons) for column in columns]
        lines.append(f"| {row} | {' | '.join(texts)} |")
    lines += ["", *(f"[{n}] {reason}  " for n, reason in enumerate(reasons, 1))]
    return "\n".join(lines).rstrip()


def _cell(item: Compared | None, reasons: list[str]) -> str:
    if item is None:
        return "-"
    note = f" [{reasons.index(item.reason) + 1}]" if item.far else ""
    return f"{item.ours} / {item.published} = {item.ratio:.2f}{note}"


def claims_markdown(panels: Sequence[tuple[Figure, list[CheckResult]]]) -> str:
    """Return the checks of all panels; a paper's value far from ours needs a reason here too."""
    lines = [
        "| | panel | claim | here | wanted | paper | why another value |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    for figure, results in panels:
        for result in results:
            lines.append(_claim(figure, result))
    return "\n".join(lines)


def _claim(figure: Figure, result: CheckResult) -> str:
    check = result.check
    paper, why = "", ""
    if check.paper is not None:
        paper = f"{check.paper:g} {check.quantity.unit}".rstrip()
        near = NEAR[0] <= result.value / check.paper <= NEAR[1]
        if not near or not check.reproduced:
            why = check.reason
            if not why:
                raise LabError(
                    f"{figure.name}: [[check]] {check.name}: {result.value:.3g} against the "
                    f"paper's {check.paper:g} needs a `reason`"
                )
    value = with_unit(result.value, check.quantity)
    return (
        f"| {result.verdict} | {panel_name(figure)} | {check.text} | {value} | {check.bound} "
        f"| {paper} | {why} |"
    )


def panel_name(figure: Figure) -> str:
    """Return a panel's title without the title of its figure."""
    return figure.title.rsplit(": ", 1)[-1]
