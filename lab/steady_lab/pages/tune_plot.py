# SPDX-License-Identifier: MIT OR Apache-2.0
"""A tune report's plot as Plotly data: the tail of each measurement against its throughput.

Filled markers keep the limit, open ones do not; a line joins the frontier. report.js places the
labels, in their order, where they cover nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steady_lab.pages.plot import escape, value_axis
from steady_lab.pages.trace_plot import time_unit
from steady_lab.pages.tune_report import TunePoint, TuneReport, us

KEPT, NOT_KEPT, NONE, INK, FRONTIER = "#0072B2", "#D55E00", "#4d4d4d", "#1a1a1a", "#9a9a9a"
LIMIT = "#C4619C"
LIMIT_INTERVAL = "rgba(196, 97, 156, 0.14)"
MARKER_PX, RING_PX = 9, 20
RINGS = ("pick", "nearest to the limit")
LEGEND = (
    *("keeps the limit", "does not keep it", "without a scheduler", *RINGS),
    *("frontier", "limit", "interval of the limit"),
)
LOG_FROM = 8  # a greater factor between the ends goes on a log axis
MARGIN = 0.07


def tune_plot(report: TuneReport) -> dict[str, Any]:
    """Return traces, the panel and labels for report.js."""
    unit_ns, unit = time_unit([float(ns) for ns in _tails_ns(report)])
    tails = [ns / unit_ns for ns in _tails_ns(report)]
    x = _axis("Throughput of all jobs (MiB/s)", _throughputs(report))
    y = _axis(f"Real-time {report.tail} ({unit})", tails)
    groups = [
        ("keeps the limit", "circle", KEPT, [p for p in report.points if p.is_met]),
        ("does not keep it", "circle-open", NOT_KEPT, [p for p in report.points if not p.is_met]),
        ("without a scheduler", "x", NONE, [report.none] if report.none else []),
    ]
    limit, frontier = _limit_traces(report, x, y, unit_ns), _frontier_trace(report, unit_ns)
    traces = [*limit, frontier]
    traces += [_points_trace(report, *group, unit_ns) for group in groups]
    traces.append(_ring_trace(report, unit_ns))
    traces = [trace | {"legendrank": LEGEND.index(trace["name"])} for trace in traces]
    names = ", ".join(report.chosen)
    return {
        "traces": [trace for trace in traces if trace["x"]],
        "panels": [{"caption": f"labels: {escape(names)}", "x": x, "y": y}],
        "labels": [_label(report, point, unit_ns) for point in _by_weight(report)],
        "lines": [{"x": line["x"], "y": line["y"]} for line in (limit[-1], frontier)],
    }


def _tails_ns(report: TuneReport) -> list[float]:
    ends = [(p.tail_ns, p.tail_ns_min, p.tail_ns_max) for p in report.measurements]
    limit = report.tail_ns_limit
    return [ns for each in ends for ns in each if ns is not None] + ([limit] if limit else [])


def _throughputs(report: TuneReport) -> list[float]:
    limit = report.mib_s_limit
    return [point.mib_s for point in report.measurements] + ([limit] if limit else [])


def _axis(label: str, values: list[float]) -> dict[str, Any]:
    """Return a log axis for values of different magnitude; a linear one for others."""
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_FROM:
        return value_axis(label, values)
    margin = MARGIN * (high - low) or MARGIN * high or 1.0
    range_ = [max(0.0, low - margin), high + margin]
    return {"title": {"text": label}, "type": "linear", "range": range_}


def _ends(axis: dict[str, Any]) -> list[float]:
    return [10**end for end in axis["range"]] if axis["type"] == "log" else list(axis["range"])


def _limit_traces(
    report: TuneReport, x: dict[str, Any], y: dict[str, Any], unit_ns: int
) -> list[dict[str, Any]]:
    """Return the limit as a line across the panel, and its interval as a band."""
    shared = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "name": "limit"}
    line = shared | {"line": {"color": LIMIT, "width": 1.6, "dash": "8px,3px"}}
    if report.tail_ns_limit is None:
        return [line | {"x": [report.mib_s_limit] * 2, "y": _ends(y)}]
    limit = line | {"x": _ends(x), "y": [report.tail_ns_limit / unit_ns] * 2}
    share, none = report.percent_of_none, report.none
    if share is None or none is None or none.tail_ns_min is None or none.tail_ns_max is None:
        return [limit]
    low, high = (ns * share / 100 / unit_ns for ns in (none.tail_ns_min, none.tail_ns_max))
    left, right = _ends(x)
    band: dict[str, Any] = {
        "x": [left, right, right, left],
        "y": [low, low, high, high],
        "fill": "toself",
    }
    band |= {"fillcolor": LIMIT_INTERVAL, "line": {"width": 0}}
    return [shared | band | {"name": "interval of the limit"}, limit]


def _frontier_trace(report: TuneReport, unit_ns: int) -> dict[str, Any]:
    frontier = sorted((p for p in report.points if "frontier" in p.marks), key=lambda p: p.tail_ns)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "frontier",
        "x": [point.mib_s for point in frontier],
        "y": [point.tail_ns / unit_ns for point in frontier],
        "line": {"color": FRONTIER, "width": 1.6},
        "hoverinfo": "skip",
    }


def _points_trace(
    report: TuneReport,
    name: str,
    symbol: str,
    colour: str,
    points: Sequence[TunePoint],
    unit_ns: int,
) -> dict[str, Any]:
    def beyond(end: int | None, tail_ns: int) -> float:
        return 0.0 if end is None else abs(end - tail_ns) / unit_ns

    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [point.mib_s for point in points],
        "y": [point.tail_ns / unit_ns for point in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [beyond(point.tail_ns_max, point.tail_ns) for point in points],
            "arrayminus": [beyond(point.tail_ns_min, point.tail_ns) for point in points],
            "color": colour,
            "thickness": 1.3,
            "width": 4,
        },
        "marker": {
            "symbol": symbol,
            "size": MARKER_PX,
            "color": colour,
            "line": {"width": 1.8, "color": colour},
        },
        "text": [_hover(report, point) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _ring_trace(report: TuneReport, unit_ns: int) -> dict[str, Any]:
    """Return a ring around the pick, or around the nearest candidate."""
    ringed = [point for point in report.points if point.is_ringed]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": RINGS[0] if report.raw["pick"] else RINGS[1],
        "x": [point.mib_s for point in ringed],
        "y": [point.tail_ns / unit_ns for point in ringed],
        "marker": {"symbol": "circle-open", "size": RING_PX, "color": INK, "line": {"width": 2}},
        "hoverinfo": "skip",
    }


def _by_weight(report: TuneReport) -> list[TunePoint]:
    """Return the measurements, those first that must not go without a label."""

    def weight(point: TunePoint) -> int:
        is_first = (point.is_ringed, point is report.none, "frontier" in point.marks)
        return is_first.index(True) if any(is_first) else len(is_first)

    return sorted(report.measurements, key=weight)


def _label(report: TuneReport, point: TunePoint, unit_ns: int) -> dict[str, Any]:
    """Return a label, and the bar that it must not cover."""
    values = ", ".join(str(point.knobs[name]) for name in report.chosen if point.knobs)
    text = escape(values or "none")
    known = [ns for ns in (point.tail_ns_min, point.tail_ns, point.tail_ns_max) if ns is not None]
    return {
        "x": point.mib_s,
        "y": point.tail_ns / unit_ns,
        "low": min(known) / unit_ns,
        "high": max(known) / unit_ns,
        "text": f"<b>{text}</b>" if point.is_ringed else text,
        "apart_px": (RING_PX if point.is_ringed else MARKER_PX) / 2,
    }


def _hover(report: TuneReport, point: TunePoint) -> str:
    name = report.knobs_text(point.knobs) if point.knobs else "without a scheduler"
    marks = f" ({', '.join(point.marks)})" if point.marks else ""
    low, high = (us(ns) if ns is not None else "?" for ns in (point.tail_ns_min, point.tail_ns_max))
    lines = [
        f"<b>{escape(name)}</b>{marks}",
        f"{report.tail}: {us(point.tail_ns)} µs, {report.interval_percent:g} %: {low} to {high}",
        f"throughput: {point.mib_s:.2f} MiB/s",
        f"real-time I/Os: {point.samples}",
        *([] if point is report.none else [f"limit: {point.verdict}"]),
    ]
    return "<br>".join(lines)
