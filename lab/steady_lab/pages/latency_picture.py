# SPDX-License-Identifier: MIT OR Apache-2.0
"""A map of latency as assets/latency.html draws it: places in px, and the words at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.pages.latency_map import Columns, Rows, counted, level_of, level_starts
from steady_lab.pages.trace_words import round_time_text, time_text

WIDTH_PX, HEIGHT_PX = 1000, 322
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 66, 986, 28, 248
NUMBER_PX = 20  # of a mark, in the line of numbers above the map
LEGEND_PX = 96
Point = tuple[int, int]  # time or offset, and latency in ns


@dataclass(frozen=True)
class Across:
    """What a map has from left to right: columns, and in which unit to print them."""

    title: str
    columns: Columns
    unit: int
    unit_name: str

    def text(self, value: int) -> str:
        """Return a value with its unit."""
        return f"{value / self.unit:.10g} {self.unit_name}"


@dataclass(frozen=True)
class Cell:
    """A cell with I/Os in it."""

    x: float
    y: float
    width: float
    height: float
    level: int
    text: str


@dataclass(frozen=True)
class Label:
    """A tick on an axis, or a colour in the legend."""

    at: float
    text: str
    level: int = 0


@dataclass(frozen=True)
class Mark:
    """One of the longest I/Os, with its number above the map."""

    number: int
    x: float
    y: float
    number_x: float
    text: str


@dataclass(frozen=True)
class LatencyPicture:
    """One map."""

    caption: str
    x_title: str
    cells: list[Cell]
    x_ticks: list[Label]
    y_ticks: list[Label]
    legend: list[Label]
    marks: list[Mark]

    width, height = WIDTH_PX, HEIGHT_PX
    left, right, top, bottom = LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX


def latency_picture(
    caption: str,
    across: Across,
    rows: Rows,
    points: Sequence[Point],
    longest: dict[int, tuple[Point, str]],
) -> LatencyPicture:
    """Return the map of these points; `longest` has the points to mark, by number."""
    counts = counted(points, across.columns, rows)
    most = max(counts.values())
    starts = level_starts(most)
    return LatencyPicture(
        caption=caption,
        x_title=f"{across.title} ({across.unit_name})",
        cells=[
            _cell(across, rows, at, number, level_of(number, starts))
            for at, number in sorted(counts.items())
        ],
        x_ticks=[
            Label(_x(across.columns.share(value)), f"{value / across.unit:.10g}")
            for value in across.columns.ticks()
        ],
        y_ticks=[Label(_y(rows.share(ns)), round_time_text(ns)) for ns in rows.ticks()],
        legend=_legend(starts, most),
        marks=_marks(across.columns, rows, longest),
    )


def _cell(across: Across, rows: Rows, at: tuple[int, int], number: int, level: int) -> Cell:
    columns, (column, row) = across.columns, at
    left, right = (_x(n / columns.count) for n in (column, column + 1))
    top, bottom = (_y(n / rows.count) for n in (row + 1, row))
    begin = across.text(columns.start + column * columns.step)
    times = " to ".join(time_text(rows.edge_ns(n)) for n in (row, row + 1))
    text = f"{number} at {begin}, {times}"
    return Cell(left, top, round(right - left, 1), round(bottom - top, 1), level, text)


def _legend(starts: Sequence[int], most: int) -> list[Label]:
    ends = [start - 1 for start in starts[1:]] + [most]
    return [
        Label(
            RIGHT_PX - LEGEND_PX * (len(starts) - n),
            str(start) if start == end else f"{start}–{end}",
            level_of(start, starts),
        )
        for n, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def _marks(columns: Columns, rows: Rows, longest: dict[int, tuple[Point, str]]) -> list[Mark]:
    places = [
        (_x(columns.share(value)), _y(rows.share(ns)), number, text)
        for number, ((value, ns), text) in longest.items()
    ]
    places.sort()
    numbers_x = _spread([x for x, *_ in places])
    return [
        Mark(number, x, y, number_x, text)
        for (x, y, number, text), number_x in zip(places, numbers_x, strict=True)
    ]


def _spread(wanted: Sequence[float]) -> list[float]:
    """Return places in the same order, near these, that are NUMBER_PX apart."""
    places: list[float] = []
    for x in wanted:
        places.append(max([x, *(last + NUMBER_PX for last in places[-1:])]))
    end = float(RIGHT_PX)
    for n in reversed(range(len(places))):
        places[n] = min(places[n], end)
        end = places[n] - NUMBER_PX
    return places


def _x(share: float) -> float:
    return round(LEFT_PX + share * (RIGHT_PX - LEFT_PX), 1)


def _y(share: float) -> float:
    return round(BOTTOM_PX - share * (BOTTOM_PX - TOP_PX), 1)
