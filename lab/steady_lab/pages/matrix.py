# SPDX-License-Identifier: MIT OR Apache-2.0
"""One figure's panels as a matrix: devices by loads, with the frontier of each cell.

A cell is a panel and a point. k2 with its defaults is on the frontier there unless another
scheduler is better in the p99 of real-time or in the throughput of the background, and in neither
worse (figures/rivals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.figures.rivals import DEFAULT, Better, Place, better_places, cell
from steady_lab.figures.rows import Measurements, point_text
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable, format_number
from steady_lab.pages.heat_map import Cell, heat_map
from steady_lab.pages.published import panel_name
from steady_lab.toml_table import Point

USUAL = "mq-deadline"  # what distributions set for a card or a drive with one queue
WORSE = 1.1  # times the p99 of USUAL: such a cell is marked
Panels = Sequence[tuple[Figure, Measurements]]


@dataclass(frozen=True)
class Square:
    """A cell of the matrix: p99 in ms, background in MiB/s, and the rivals that are better."""

    panel: str
    point: Point
    ours: tuple[float, float | None]
    usual: tuple[float, float | None]
    better: tuple[Place, ...]

    @property
    def gain(self) -> float:
        """Return how many times longer the usual scheduler's p99 is than k2's."""
        return self.usual[0] / self.ours[0]

    @property
    def mark(self) -> str:
        """Return "*" off the frontier, and "!" where the usual scheduler's p99 is shorter."""
        return ("*" if self.better else "") + ("!" if self.gain < 1 / WORSE else "")


def squares(panels: Panels) -> list[Square]:
    """Return all cells, panel by panel. Raises LabError where a reason is missing."""
    found = []
    for figure, measured in panels:
        free = [p for p in better_places(figure, measured) if p.better is Better.FREE]
        found += [
            Square(
                panel_name(figure),
                point,
                cell(measured, DEFAULT, point),
                cell(measured, USUAL, point),
                tuple(place for place in free if place.point == point),
            )
            for point in figure.shown_points
        ]
    return found


def matrix_table(panels: Panels) -> TextTable:
    """Return k2's p99 (ms) / background (MiB/s), those of the usual scheduler below, and marks."""
    found = squares(panels)
    points = panels[0][0].shown_points
    body = []
    for figure, _ in panels:
        own = [square for square in found if square.panel == panel_name(figure)]
        body.append([panel_name(figure), *map(_text, own)])
    caption = f"p99 (ms) / background (MiB/s) of k2, then of {USUAL}"
    return TextTable(caption, ["", *map(point_text, points)], body)


def _text(square: Square) -> str:
    return f"{_numbers(*square.ours)}{square.mark}, {_numbers(*square.usual)}"


def _numbers(p99_ms: float, mib_s: float | None) -> str:
    return f"{format_number(p99_ms)} / {'–' if mib_s is None else format_number(mib_s)}"


def summary_table(panels: Panels) -> TextTable:
    """Return in how many cells k2 is on the frontier, and how its p99 compares with the usual."""
    found = squares(panels)
    rows = [
        ("k2 is on the frontier", sum(not square.better for square in found)),
        (f"k2's p99 is shorter than that of {USUAL}", sum(s.gain > 1.02 for s in found)),
        ("it is less than half", sum(s.gain > 2 for s in found)),
        (
            f"it is more than {WORSE:g} times that of {USUAL}",
            sum(s.gain < 1 / WORSE for s in found),
        ),
    ]
    return TextTable(f"Of {len(found)} cells", ["", "cells"], [[t, str(n)] for t, n in rows])


def off_frontier_table(panels: Panels) -> TextTable:
    """Return each cell in which another scheduler is better and in nothing worse, and why."""
    body = [
        [
            square.panel,
            point_text(square.point),
            _numbers(*square.ours),
            "; ".join(
                f"{p.variant} {_numbers(p.p99_ms, p.background_mib_s)}" for p in square.better
            ),
            " ".join(dict.fromkeys(place.reason for place in square.better)),
        ]
        for square in squares(panels)
        if square.better
    ]
    return TextTable(
        "Cells in which k2 is not on the frontier", ["device", "load", "k2", "better", "why"], body
    )


def heat_map_svg(panels: Panels) -> str:
    """Return the matrix as an SVG file: colour by how much shorter k2's p99 is."""
    found = squares(panels)
    columns = [point_text(point) for point in panels[0][0].shown_points]
    rows = [panel_name(figure) for figure, _ in panels]
    cells = [
        Cell(s.panel, point_text(s.point), s.gain, f"{_numbers(*s.ours)}{s.mark}") for s in found
    ]
    title = f"p99 (ms) / background (MiB/s) under k2; colour: p99 of {USUAL} over that of k2"
    return heat_map(title, rows, columns, cells)
