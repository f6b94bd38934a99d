# SPDX-License-Identifier: MIT OR Apache-2.0
"""A heat map as an SVG file: the same numbers give the same bytes on every machine."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.pages.picture import GRID, INK, Panel, canvas

# Lengths are in inches.
CELL_WIDTH, CELL_HEIGHT, ROW_NAME, COLUMN_NAME = 1.15, 0.34, 2.1, 0.75
FACTOR_MAX = 10.0  # of the colours, which are logarithmic: blue is good, red is bad
GOOD, BAD, SAME = (0.13, 0.40, 0.67), (0.70, 0.09, 0.17), (0.97, 0.97, 0.97)
DARK = 0.55  # text is white on colours beyond this part of the scale


@dataclass(frozen=True)
class Cell:
    """One cell: `factor` 1 is neutral, above is good; `text` is written into it."""

    row: str
    column: str
    factor: float
    text: str


def heat_map(title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Cell]) -> str:
    """Return the map as an SVG file, first row on top."""
    from matplotlib.patches import Rectangle

    panel = Panel(
        width=ROW_NAME + CELL_WIDTH * len(columns) + 0.1,
        height=COLUMN_NAME + CELL_HEIGHT * len(rows) + 0.1,
        left=ROW_NAME,
        right=0.1,
        bottom=0.1,
        top=COLUMN_NAME,
    )
    with canvas(panel, 1, 0) as (figure, (axes,)):
        axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0), xticks=[], yticks=[])
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        for cell in cells:
            x, y = columns.index(cell.column), rows.index(cell.row)
            part = strength(cell.factor)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour(part), edgecolor=GRID))
            ink = "white" if abs(part) > DARK else INK
            axes.text(x + 0.5, y + 0.5, cell.text, ha="center", va="center", color=ink, size=7.5)
        for x, name in enumerate(columns):
            axes.text(x + 0.5, -0.12, textwrap.fill(name, 18), ha="center", va="bottom", size=8)
        for y, name in enumerate(rows):
            axes.text(-0.05, y + 0.5, name, ha="right", va="center", size=8)
        figure.text(0.01, 0.985, title, ha="left", va="top", size=8.5, weight="bold")
        file = io.StringIO()
        without = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=without)
    text = re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", file.getvalue())
    return text.replace(" \n", "\n")


def strength(factor: float) -> float:
    """Return how far the factor is from 1, from -1 (worst shown) to 1 (best), logarithmically."""
    if not factor > 0:
        return -1.0
    return max(-1.0, min(1.0, math.log(factor) / math.log(FACTOR_MAX)))


def colour(part: float) -> tuple[float, float, float]:
    """Return the colour of a strength."""
    end = GOOD if part > 0 else BAD
    red, green, blue = (s + (e - s) * abs(part) for s, e in zip(SAME, end, strict=True))
    return red, green, blue
