# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures for Markdown pages: the report's plots (plot.py) as small SVG files.

Draws what plot.py hands to Plotly, and only that: lines, markers and stars on linear,
logarithmic or category axes. One column of the report (sweep, cost or CCDF) over several panels of
a figure, side by side, with one legend. Plain text out, so the same numbers give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

WIDTH_PX, HEIGHT_PX = 400, 270
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 62, 12, 26, 44
LEGEND_LINE_PX, LEGEND_COLUMNS = 18, 4
COLUMNS = 2
INK, GRID = "#1a1a1a", "#e6e6e6"
FONT = 'font-family="Helvetica, Arial, sans-serif"'

Plot = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """Where a value lies between the ends of an axis, in pixels."""

    raw: dict[str, Any]
    start_px: float
    end_px: float
    low: float
    high: float

    def at(self, value: Any) -> float:
        """Return the pixel of a value."""
        if self.raw["type"] == "category":
            place = 0.5
        else:
            number = math.log10(value) if self.raw["type"] == "log" else float(value)
            place = (number - self.low) / (self.high - self.low)
        return self.start_px + place * (self.end_px - self.start_px)


def column_svg(plots: Sequence[tuple[str, Plot]], column: int) -> str:
    """Return one column (0 sweep, 1 cost, 2 CCDF) of several titled plots as an SVG file."""
    rows = math.ceil(len(plots) / COLUMNS)
    names = _legend(plots, column)
    legend_px = LEGEND_LINE_PX * math.ceil(len(names) / LEGEND_COLUMNS) + 10
    columns = min(COLUMNS, len(plots))
    width, height = columns * WIDTH_PX, rows * HEIGHT_PX + legend_px
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" {FONT} font-size="11" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for n, (title, plot) in enumerate(plots):
        x, y = n % COLUMNS * WIDTH_PX, n // COLUMNS * HEIGHT_PX
        parts.append(f'<g transform="translate({x} {y})">')
        parts += _panel(title, plot, column)
        parts.append("</g>")
    for n, trace in enumerate(names.values()):
        left_px = 20 + n % LEGEND_COLUMNS * (width - 20) / LEGEND_COLUMNS
        parts += _key(trace, left_px, rows * HEIGHT_PX + 10 + n // LEGEND_COLUMNS * LEGEND_LINE_PX)
    return "\n".join([*parts, "</svg>", ""])


def _traces(plot: Plot, column: int) -> list[dict[str, Any]]:
    axis = f"x{column + 1 if column else ''}"
    return [trace for trace in plot["traces"] if trace["xaxis"] == axis]


def _legend(plots: Sequence[tuple[str, Plot]], column: int) -> dict[str, dict[str, Any]]:
    """Return a trace per name in the legend's order; lines before the markers of their ends."""
    found: dict[str, dict[str, Any]] = {}
    traces = [trace for _, plot in plots for trace in _traces(plot, column)]
    for trace in sorted(traces, key=lambda trace: trace.get("legendrank", 0)):
        found.setdefault(trace["name"], trace)
    return found


def _panel(title: str, plot: Plot, column: int) -> list[str]:
    raw = plot["panels"][column]
    x = _axis(raw["x"], LEFT_PX, WIDTH_PX - RIGHT_PX, _values(plot, column, "x"))
    y = _axis(raw["y"], HEIGHT_PX - BOTTOM_PX, TOP_PX, _values(plot, column, "y"))
    parts = [f'<text x="{LEFT_PX}" y="16" font-size="12" font-weight="bold">{escape(title)}</text>']
    parts += _ticks(x, y)
    for trace in _traces(plot, column):
        parts += _trace(trace, x, y)
    return parts


def _values(plot: Plot, column: int, key: str) -> list[Any]:
    return [value for trace in _traces(plot, column) for value in trace[key]]


def _axis(raw: dict[str, Any], start_px: float, end_px: float, values: list[Any]) -> Axis:
    if raw["type"] == "category":
        return Axis(raw, start_px, end_px, 0, 1)
    if "range" in raw:
        return Axis(raw, start_px, end_px, *raw["range"])
    numbers = [float(value) for value in values] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    margin = 0.05 * (high - low or 1)
    return Axis(raw, start_px, end_px, low - margin, high + margin)


def _ticks(x: Axis, y: Axis) -> list[str]:
    left, right, bottom, top = LEFT_PX, WIDTH_PX - RIGHT_PX, HEIGHT_PX - BOTTOM_PX, TOP_PX
    parts = []
    for value, text in _labels(y):
        at = _number(y.at(value))
        parts.append(f'<path d="M{left} {at}H{right}" stroke="{GRID}"/>')
        parts.append(f'<text x="{left - 6}" y="{at}" dy="4" text-anchor="end">{text}</text>')
    for value, text in _labels(x):
        at = _number(x.at(value))
        parts.append(f'<path d="M{at} {bottom}V{top}" stroke="{GRID}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 14}" text-anchor="middle">{text}</text>')
    middle = (left + right) / 2
    parts.append(f'<path d="M{left} {top}V{bottom}H{right}" stroke="{INK}" fill="none"/>')
    parts.append(
        f'<text x="{_number(middle)}" y="{HEIGHT_PX - 12}" text-anchor="middle">'
        f"{escape(x.raw['title']['text'])}</text>"
    )
    centre = _number((top + bottom) / 2)
    parts.append(
        f'<text transform="translate(14 {centre}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.raw['title']['text'])}</text>"
    )
    return parts


def _labels(axis: Axis) -> list[tuple[Any, str]]:
    """Return tick values and texts; Plotly's <sup> becomes SVG's raised tspan."""
    texts = [
        text.replace("<sup>", '<tspan dy="-4" font-size="8">').replace("</sup>", "</tspan>")
        for text in axis.raw.get("ticktext", [])
    ]
    return list(zip(axis.raw.get("tickvals", []), texts, strict=True))


def _trace(trace: dict[str, Any], x: Axis, y: Axis) -> list[str]:
    points = [
        (x.at(a), y.at(b)) for a, b in zip(trace["x"], trace["y"], strict=True) if b and b > 0
    ]
    parts = []
    if "lines" in trace["mode"] and len(points) > 1:
        steps = trace["line"].get("shape") == "vh"
        parts.append(_line(_path(points, steps), trace["line"]))
    if "markers" in trace["mode"]:
        colours = trace["marker"]["color"]
        for n, (px, py) in enumerate(points):
            colour = colours[n] if isinstance(colours, list) else colours
            parts.append(_marker(trace["marker"]["symbol"], colour, px, py))
    return parts


def _path(points: list[tuple[float, float]], steps: bool) -> str:
    (x, y), *rest = points
    path = f"M{_number(x)} {_number(y)}"
    for px, py in rest:
        path += f"V{_number(py)}H{_number(px)}" if steps else f"L{_number(px)} {_number(py)}"
    return path


def _line(path: str, line: dict[str, Any]) -> str:
    dash = (
        "" if line["dash"] == "solid" else f' stroke-dasharray="{line["dash"].replace("px", "")}"'
    )
    return (
        f'<path d="{path}" fill="none" stroke="{line["color"]}" '
        f'stroke-width="{line["width"]}"{dash}/>'
    )


def _marker(symbol: str, colour: str, x: float, y: float) -> str:
    """Return a marker: published values as stars, muted variants open, highlighted ones filled."""
    at_x, at_y = _number(x), _number(y)
    if symbol == "star-open":
        return (
            f'<text x="{at_x}" y="{at_y}" dy="5" text-anchor="middle" font-size="16" '
            f'fill="{colour}">&#9734;</text>'
        )
    fill = "none" if symbol.endswith("-open") else colour
    paint = f'fill="{fill}" stroke="{colour}" stroke-width="1.3"'
    corners = {"square": "-3.5 -3.5h7v7h-7z", "diamond": "0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z"}
    corners |= {"triangle-up": "0 -4.5l4.5 8h-9z", "triangle-down": "0 4.5l4.5 -8h-9z"}
    shape = corners.get(symbol.removesuffix("-open"))
    if shape:
        return f'<path d="M{at_x} {at_y}m{shape}" {paint}/>'
    return f'<circle cx="{at_x}" cy="{at_y}" r="3.6" {paint}/>'


def _key(trace: dict[str, Any], x: float, y: float) -> list[str]:
    parts = []
    if "lines" in trace["mode"]:
        parts.append(_line(f"M{_number(x)} {_number(y)}h28", trace["line"]))
    marker = trace.get("marker")
    if marker:
        colour = INK if isinstance(marker["color"], list) else marker["color"]
        parts.append(_marker(marker["symbol"], colour, x + 14, y))
    text = f'<text x="{_number(x + 34)}" y="{_number(y)}" dy="4">{escape(trace["name"])}</text>'
    return [*parts, text]


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
