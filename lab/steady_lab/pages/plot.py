# SPDX-License-Identifier: MIT OR Apache-2.0
"""A figure's plot as Plotly data: (a) the sweep, (b) what it costs, (c) the CCDF at one point.

Without a sweep (a) has the latencies side by side, and (b) the costs over the latency.

The panels are one Plotly figure, so a click on the legend hides a variant in all of them.
Every variant differs in colour, marker and dash, so nothing depends on colour alone. Those that are
not highlighted have thin lines, and larger open markers that show under a coinciding line.
picture.py draws the same data for Markdown pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from steady_lab.figures.metric import CLASS_WORDS, LATENCIES, NS_PER_MS, Metric
from steady_lab.figures.results import Drawable
from steady_lab.figures.rows import point_text
from steady_lab.figures.spec import Figure
from steady_lab.toml_table import Point

# From Okabe and Ito's colours, and more that stay apart from them.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#C4619C", "#4d4d4d", "#C98A00", "#6B3FA0"),
    *("#3BA3DE", "#7C93D1", "#3DB8A5", "#8A8F2A", "#8C4A2F", "#9a9a9a"),
    *("#5B8C5A", "#B00020"),
)
SYMBOLS = (
    *("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon"),
    *("triangle-left", "triangle-right", "cross", "x"),
)
DASHES = ("solid", "8px,3px", "8px,3px,2px,3px", "9px,2px", "3px,3px", "2px,2px", "6px,2px,2px,2px")
# A variant looks the same in all figures: its index in the lists above.
PLACES = {
    **dict.fromkeys(("k2-split4", "k2-split4-merging", "k2-split", "split4"), 0),
    **dict.fromkeys(("k2", "k2-merging", "whole"), 1),
    **dict.fromkeys(("k2-maxsectors4", "k2-maxsectors"), 2),
    **{"mq-deadline": 3, "none": 4, "kyber": 5, "bfq": 6},
    **dict.fromkeys(("k2-split16", "split16"), 7),
    **dict.fromkeys(("k2-split64", "split64"), 8),
    **{"k2-maxsectors16": 9, "k2-maxsectors64": 10, "k2-1000us": 13, "k2-440us": 14},
}
PUBLISHED_NAME = "as published"
TICKS_PER_AXIS_MAX = 10
TICK_STEPS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True)
class Style:
    """How one variant is drawn in all panels."""

    colour: str
    symbol: str
    dash: str
    width_px: float
    marker_px: int


def plot_data(figure: Figure, result: Drawable) -> dict[str, Any]:
    """Return traces and panels for report.js; plain JSON values only."""
    styles, plot = variant_styles(figure), figure.plot
    traces = []
    for name in _drawing_order(figure):
        traces.append(_sweep_trace(figure, result, name, plot.y_metric, "", styles[name]))
        traces.append(_cost_trace(figure, result, name, styles[name]))
        traces += _ccdf_traces(figure, result, name, styles[name])
    traces.append(_published_trace(figure, plot.y_metric, "", styles))
    if figure.is_swept:
        traces.append(_published_trace(figure, plot.cost_metric, "2", styles))
    return {
        "traces": [trace for trace in traces if trace["x"]],
        "panels": [
            {
                "caption": f"<b>(a)</b> {escape(_first_caption(figure))}",
                "x": _sweep_x_axis(figure),
                "y": value_axis(plot.y_label, _plotted_values(figure, result, plot.y_metric)),
            },
            {
                "caption": f"<b>(b)</b> {escape(_cost_caption(figure))}",
                "x": _cost_x_axis(figure, result),
                "y": value_axis(plot.cost_label, _plotted_values(figure, result, plot.cost_metric)),
            },
            {
                "caption": f"<b>(c)</b> real-time CCDF, {escape(plot.detail_label)}",
                "x": value_axis("Latency x (ms)", _ccdf_span(figure, result)),
                "y": _probability_axis(figure, result),
            },
        ],
    }


def variant_styles(figure: Figure) -> dict[str, Style]:
    """Return a style per variant: filled markers and wide lines for the highlighted."""
    strong = figure.plot.highlight
    names = [*strong, *(v.name for v in figure.workload.variants if v.name not in strong)]
    known = {name: PLACES[name] for name in names if name in PLACES}
    free = (n for n in range(len(names)) if n not in known.values())
    places = {name: known[name] if name in known else next(free) for name in names}
    return {name: _style(places[name], name in strong) for name in names}


def _style(place: int, is_strong: bool) -> Style:
    colour, symbol, dash = (_cycle(each, place) for each in (COLOURS, SYMBOLS, DASHES))
    return (
        Style(colour, symbol, dash, 2.4, 8)
        if is_strong
        else Style(colour, f"{symbol}-open", dash, 1.4, 11)
    )


def ccdf(histogram_ns: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Return latencies in ms and P(latency >= x) at each, down to 1/count; empty for no data."""
    remaining = total = sum(count for _, count in histogram_ns)
    latencies_ms, probabilities = [], []
    for value_ns, count in histogram_ns:
        latencies_ms.append(value_ns / NS_PER_MS)
        probabilities.append(remaining / total)
        remaining -= count
    return latencies_ms, probabilities


def _cycle(values: tuple[str, ...], n: int) -> str:
    return values[n % len(values)]


def _drawing_order(figure: Figure) -> list[str]:
    """Muted variants first, so highlighted lines lie on top; each group in spec order."""
    names = [variant.name for variant in figure.workload.variants]
    strong = figure.plot.highlight
    return [n for n in names if n not in strong] + [n for n in names if n in strong]


def _sweep_trace(
    figure: Figure, result: Drawable, name: str, metric: Metric, panel: str, style: Style
) -> dict[str, Any]:
    places = _places(figure, metric)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": figure.workload.title_of(name),
        "legendgroup": name,
        "legendrank": _rank(figure, name),
        "showlegend": panel == "",
        "x": [x for x, _, _ in places],
        # A gap where a class does not run at a point.
        "y": [result.measured.found(name, point, each) for _, point, each in places],
        "line": {"color": style.colour, "width": style.width_px, "dash": style.dash},
        "marker": _marker(style),
        "text": [_hover_text(figure, result, name, point) for _, point, _ in places],
        "hovertemplate": "%{text}<extra></extra>",
        "xaxis": f"x{panel}",
        "yaxis": f"y{panel}",
    }


def _cost_trace(figure: Figure, result: Drawable, name: str, style: Style) -> dict[str, Any]:
    trace = _sweep_trace(figure, result, name, figure.plot.cost_metric, "2", style)
    if figure.is_swept:
        return trace
    point, latency = figure.shown_points[0], figure.plot.y_metric
    return trace | {"x": [result.measured.value(name, point, latency)]}


def _ccdf_traces(figure: Figure, result: Drawable, name: str, style: Style) -> list[dict[str, Any]]:
    """Return the step line and the marker at the largest latency, which ends the line."""
    histogram = result.histogram_ns(name, figure.plot.detail_point, "rt")
    latencies_ms, probabilities = ccdf(histogram)
    if not histogram:
        return []
    shared = {
        "type": "scatter",
        "name": figure.workload.title_of(name),
        "legendgroup": name,
        "legendrank": _rank(figure, name),
        "showlegend": False,
        "xaxis": "x3",
        "yaxis": "y3",
        "hovertemplate": "<b>%{fullData.name}</b><br>P(latency ≥ %{x:.3f} ms) = %{y:.3g}"
        "<extra></extra>",
    }
    line = {"color": style.colour, "width": style.width_px, "dash": style.dash, "shape": "vh"}
    return [
        {**shared, "mode": "lines", "x": latencies_ms, "y": probabilities, "line": line},
        {
            **shared,
            "mode": "markers",
            "x": latencies_ms[-1:],
            "y": probabilities[-1:],
            "marker": _marker(style),
        },
    ]


def _published_trace(
    figure: Figure, metric: Metric, panel: str, styles: dict[str, Style]
) -> dict[str, Any]:
    shown = [item for item in figure.published if item.cell.metric == metric]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": PUBLISHED_NAME,
        "legendgroup": PUBLISHED_NAME,
        "legendrank": 2000,
        "showlegend": panel == "",
        "x": [_x_value(item.cell.point) for item in shown],
        "y": [item.value for item in shown],
        "marker": {
            "symbol": "star-open",
            "size": 13,
            "color": [styles[item.cell.variant].colour for item in shown],
            "line": {"width": 1.6},
        },
        "text": [
            f"<b>{escape(figure.workload.title_of(item.cell.variant))}</b>, {PUBLISHED_NAME}<br>"
            f"{item.value:g} {item.cell.metric.unit} ({escape(item.where)})"
            for item in shown
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "xaxis": f"x{panel}",
        "yaxis": f"y{panel}",
    }


def _marker(style: Style) -> dict[str, Any]:
    return {
        "symbol": style.symbol,
        "size": style.marker_px,
        "color": style.colour,
        "line": {"width": 1.5, "color": style.colour},
    }


def _rank(figure: Figure, name: str) -> int:
    return 1000 + [variant.name for variant in figure.workload.variants].index(name)


def _hover_text(figure: Figure, result: Drawable, name: str, point: Point) -> str:
    """Return all values of one cell, real-time percentiles first."""
    lines = [f"<b>{escape(figure.workload.title_of(name))}</b>"]
    if point is not None:
        lines.append(f"{escape(figure.plot.x_label)}: {escape(point_text(point))}")
    row = result.measured.row(name, point, "rt")
    for statistic, words in LATENCIES.items():
        latency_ms = row.reported(Metric("rt", statistic))
        if latency_ms is not None:
            lines.append(f"{words}: {latency_ms:.3f} ms")
    lines.append(f"real-time I/Os: {row.count}")
    for each in result.measured.rows:
        same = (each.variant, each.point) == (name, point_text(point))
        if same and each.mib_s is not None:
            lines.append(f"{CLASS_WORDS[each.class_name]}: {each.mib_s:.2f} MiB/s")
    return "<br>".join(lines)


def escape(text: str) -> str:
    """Escape what Plotly would read as its pseudo-HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _places(figure: Figure, metric: Metric) -> list[tuple[float | int | str, Point, Metric]]:
    """Return the points of a panel's line: those of the sweep, or else the latencies."""
    points = figure.shown_points
    if not figure.is_swept and metric.is_latency:
        chosen = figure.plot.detail_latencies
        return [(LATENCIES[name], points[0], Metric(metric.class_name, name)) for name in chosen]
    return [(_x_value(point), point, metric) for point in points]


def _first_caption(figure: Figure) -> str:
    metric = figure.plot.y_metric
    return metric.label if figure.is_swept else f"{CLASS_WORDS[metric.class_name]} latency"


def _cost_caption(figure: Figure) -> str:
    cost = figure.plot.cost_metric.label
    return cost if figure.is_swept else f"{cost}, and {figure.plot.y_metric.label}"


def _cost_x_axis(figure: Figure, result: Drawable) -> dict[str, Any]:
    plot = figure.plot
    if figure.is_swept:
        return _sweep_x_axis(figure)
    point = figure.shown_points[0]
    latencies = [
        result.measured.value(variant.name, point, plot.y_metric)
        for variant in figure.workload.variants
    ]
    return value_axis(f"{plot.y_metric.label} ({plot.y_metric.unit})", latencies)


def _x_value(point: Point) -> float | int | str:
    return "" if point is None else point


def _sweep_x_axis(figure: Figure) -> dict[str, Any]:
    """Numbers that span more than a factor of 8 go on a log axis, with a tick at each point."""
    if not figure.is_swept:
        return {"title": {"text": ""}, "type": "category"}
    points = figure.shown_points
    numbers = [point for point in points if isinstance(point, int | float)]
    axis: dict[str, Any] = {"title": {"text": figure.plot.x_label}}
    if len(numbers) < len(points):
        return axis | {"type": "category"}
    low, high = min(numbers), max(numbers)
    axis |= {"tickvals": points, "ticktext": [point_text(point) for point in points]}
    if low <= 0 or high / low <= 8:
        return axis | {"type": "linear"}
    margin = 0.045 * math.log10(high / low)
    return axis | {"type": "log", "range": [math.log10(low) - margin, math.log10(high) + margin]}


def _plotted_values(figure: Figure, result: Drawable, metric: Metric) -> list[float]:
    found = [
        result.measured.found(variant.name, point, each)
        for variant in figure.workload.variants
        for _, point, each in _places(figure, metric)
    ]
    values = [value for value in found if value is not None]
    return values + [item.value for item in figure.published if item.cell.metric == metric]


def _ccdf_span(figure: Figure, result: Drawable) -> list[float]:
    ends = []
    for variant in figure.workload.variants:
        histogram = result.histogram_ns(variant.name, figure.plot.detail_point, "rt")
        ends += [histogram[n][0] / NS_PER_MS for n in (0, -1) if histogram]
    return ends


def value_axis(label: str, values: list[float]) -> dict[str, Any]:
    """Return a log axis around the values with as many round ticks as stay readable."""
    positive = [value for value in values if value > 0]
    if not positive:
        return {"title": {"text": label}, "type": "linear"}
    low, high = min(positive), max(positive)
    margin = max(0.05 * math.log10(high / low), 0.05)
    start, end = math.log10(low) - margin, math.log10(high) + margin
    for steps in TICK_STEPS:
        ticks = [
            step * 10.0**decade
            for decade in range(math.floor(start), math.ceil(end) + 1)
            for step in steps
            if start <= math.log10(step * 10.0**decade) <= end
        ]
        if len(ticks) <= TICKS_PER_AXIS_MAX:
            break
    return {
        "title": {"text": label},
        "type": "log",
        "range": [start, end],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def _probability_axis(figure: Figure, result: Drawable) -> dict[str, Any]:
    """Return a log axis from 1 down to one I/O out of all, with powers of ten as ticks."""
    counts = [
        result.measured.row(variant.name, figure.plot.detail_point, "rt").count
        for variant in figure.workload.variants
    ]
    decades = max(1, math.ceil(math.log10(max([*counts, 1]))))
    return {
        "title": {"text": "P(latency ≥ x)"},
        "type": "log",
        "range": [-decades - 0.1, 0.1],
        "tickvals": [10.0**-n for n in range(decades + 1)],
        "ticktext": ["1", *(f"10<sup>−{n}</sup>" for n in range(1, decades + 1))],
    }
