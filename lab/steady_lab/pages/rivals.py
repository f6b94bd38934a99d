# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of where other schedulers and settings are better than k2's default, and for what."""

from __future__ import annotations

from collections.abc import Sequence

from steady_lab.figures.rivals import DEFAULT, Better, Place, better_places, cell
from steady_lab.figures.rows import Measurements, point_text
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable, format_number
from steady_lab.pages.published import panel_name


def rivals_markdown(panels: Sequence[tuple[Figure, Measurements]]) -> str:
    """Return a table per panel, p99 (ms) / background (MiB/s), and the reasons below.

    Raises LabError where a reason is missing.
    """
    placed = [(figure, measured, better_places(figure, measured)) for figure, measured in panels]
    every = [place.reason for _, _, places in placed for place in places]
    reasons = list(dict.fromkeys(reason for reason in every if reason))
    tables = [
        _table(figure, measured, places, reasons).markdown() for figure, measured, places in placed
    ]
    notes = "\n".join(f"[{n}] {reason}  " for n, reason in enumerate(reasons, 1)).rstrip()
    return "\n\n".join([*tables, notes] if notes else tables)


def rivals_count_table(
    figures: Sequence[tuple[str, Sequence[tuple[Figure, Measurements]]]],
) -> TextTable:
    """Return per figure of how many cells the rivals have which are better, and in what.

    Raises LabError where a reason is missing.
    """
    body = []
    for name, panels in figures:
        places = [place for figure, measured in panels for place in better_places(figure, measured)]
        cells = sum(
            len(figure.shown_points) * (len(figure.workload.variants) - 1) for figure, _ in panels
        )
        counts = [str(sum(place.better is better for place in places)) for better in Better]
        body.append([f"`{name}`", str(cells), *counts])
    return TextTable(
        "Cells of rivals (variant and point)",
        ["figure", "cells", *(better.value for better in Better)],
        body,
    )


def _table(
    figure: Figure, measured: Measurements, places: Sequence[Place], reasons: list[str]
) -> TextTable:
    title = panel_name(figure)
    lines = []
    for point in figure.shown_points:
        here = [place for place in places if place.point == point]
        lines.append(
            [
                point_text(point) or title,
                _numbers(*cell(measured, DEFAULT, point)),
                *(_listed(figure, here, better, reasons) for better in Better),
            ]
        )
    header = ["", figure.workload.title_of(DEFAULT), *(better.value for better in Better)]
    caption = f"**{title[0].upper()}{title[1:]}** ({figure.plot.x_label})"
    return TextTable(caption, header, lines)


def _listed(figure: Figure, places: Sequence[Place], better: Better, reasons: list[str]) -> str:
    return "; ".join(
        f"{figure.workload.title_of(place.variant)} "
        f"{_numbers(place.p99_ms, place.background_mib_s)}"
        + (f" [{reasons.index(place.reason) + 1}]" if place.reason else "")
        for place in places
        if place.better is better
    )


def _numbers(p99_ms: float, background_mib_s: float | None) -> str:
    background = "–" if background_mib_s is None else format_number(background_mib_s)
    return f"{format_number(p99_ms)} / {background}"
