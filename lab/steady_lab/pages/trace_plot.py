# SPDX-License-Identifier: MIT OR Apache-2.0
"""A trace's plots as Plotly data: the four spans as stacked bars, as in the e.MMC analysis paper.

A label stands above its bar, not next to it: labels are long, and pages can be narrow.
"""

from __future__ import annotations

from typing import Any

from steady_lab.pages.plot import escape
from steady_lab.pages.trace_words import cause_texts, group_label, time_text, worst_label

# In the order in which an I/O passes them; the colours stay apart for colour-blind readers.
SPANS = {
    "submission": ("submission (call, VFS)", "#56B4E9"),
    "block": ("block layer and driver", "#E69F00"),
    "device": ("device", "#0072B2"),
    "post": ("post (interrupt, return)", "#009E73"),
}
BARS_MAX = 12
WORST_MAX = 10
BAR_PX, AROUND_BARS_PX = 52, 130
BAR_WIDTH, LABEL_ABOVE = 0.42, 0.38
SHARE_SHOWN_PERCENT_MIN = 7
MS = (1_000_000, "ms")
US = (1_000, "µs")


def shown_groups(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that took the most time altogether, in the record's order."""
    groups = document["ios"] + document["requests"]
    by_time = sorted(groups, key=lambda group: -group["total"]["mean_ns"] * group["count"])
    return [group for group in groups if group in by_time[:BARS_MAX]]


def shown_worst(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the longest I/Os and requests, the longest first."""
    both = document["worst_ios"] + document["worst_requests"]
    return sorted(both, key=lambda worst: -worst["total_ns"])[:WORST_MAX]


def spans_plot(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean times and shares of groups, side by side."""
    labels = [f"<b>{escape(group_label(group))}</b> ({group['count']}×)" for group in groups]
    unit_ns, unit = time_unit([group["total"]["mean_ns"] for group in groups])
    spans = [{span["span"]: span for span in group["spans"]} for group in groups]
    traces = []
    for name in SPANS:
        own = [each.get(name, {"mean_ns": 0, "share_percent": 0}) for each in spans]
        shares = [span["share_percent"] for span in own]
        hover = [_hover(label, name, each) for label, each in zip(labels, spans, strict=True)]
        times = [span["mean_ns"] / unit_ns for span in own]
        traces.append(_bars(name, times, shares, hover, ""))
        traces.append(_bars(name, shares, shares, hover, "2") | {"showlegend": False})
    traces += [_labels(labels, ""), _labels(labels, "2")]
    panels = [
        _panel("<b>(a)</b> mean time", f"Mean time ({unit})", len(groups)),
        _panel("<b>(b)</b> share of each span", "Share (%)", len(groups)),
    ]
    return _plot(traces, panels, len(groups))


def worst_plot(worst: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the longest I/Os, each with its cause."""
    unit_ns, unit = time_unit([each["total_ns"] for each in worst])
    labels = [_worst_text(n, each, "; ") for n, each in enumerate(worst, 1)]
    lines = [_worst_text(n, each, "<br>") for n, each in enumerate(worst, 1)]
    traces = []
    for name in SPANS:
        times_ns = [each["spans"][f"{name}_ns"] for each in worst]
        shares = [
            100 * ns / each["total_ns"] if each["total_ns"] else 0
            for ns, each in zip(times_ns, worst, strict=True)
        ]
        hover = [
            f"{line}<br>{SPANS[name][0]}: {time_text(ns)}"
            for line, ns in zip(lines, times_ns, strict=True)
        ]
        traces.append(_bars(name, [ns / unit_ns for ns in times_ns], shares, hover, ""))
    traces.append(_labels(labels, ""))
    return _plot(traces, [_panel("", f"Time ({unit})", len(worst))], len(worst))


def _worst_text(number: int, worst: dict[str, Any], between: str) -> str:
    causes = between.join(escape(text) for text in cause_texts(worst))
    return f"<b>{number}. {escape(worst_label(worst))}</b> {time_text(worst['total_ns'])}: {causes}"


def _plot(traces: list[dict[str, Any]], panels: list[dict[str, Any]], rows: int) -> dict[str, Any]:
    height_px = BAR_PX * rows + AROUND_BARS_PX
    return {"traces": traces, "panels": panels, "barmode": "stack", "height_px": height_px}


def _bars(
    name: str, values: list[float], shares: list[float], hover: list[str], panel: str
) -> dict[str, Any]:
    title, colour = SPANS[name]
    return {
        "type": "bar",
        "orientation": "h",
        "name": title,
        "legendgroup": name,
        "x": values,
        "y": list(range(len(values))),
        "width": BAR_WIDTH,
        "marker": {"color": colour},
        "text": [f"{s:.0f} %" if s >= SHARE_SHOWN_PERCENT_MIN else "" for s in shares],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "xaxis": f"x{panel}",
        "yaxis": f"y{panel}",
    }


def _labels(labels: list[str], panel: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "text",
        "x": [0] * len(labels),
        "y": [row - LABEL_ABOVE for row in range(len(labels))],
        "text": labels,
        "textposition": "middle right",
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
        "xaxis": f"x{panel}",
        "yaxis": f"y{panel}",
    }


def _panel(caption: str, x_label: str, rows: int) -> dict[str, Any]:
    y = {"title": {"text": ""}, "range": [rows - 0.6, -0.7], "showticklabels": False}
    y |= {"ticks": "", "showgrid": False, "fixedrange": True}
    x = {"title": {"text": x_label}, "rangemode": "tozero"}
    return {"caption": caption, "x": x, "y": y}


def _hover(label: str, name: str, spans: dict[str, dict[str, Any]]) -> str:
    lines = [label, f"<b>{SPANS[name][0]}</b>"]
    span = spans.get(name)
    if span is None:
        return "<br>".join([*lines, "not known of requests"])
    lines.append(f"mean {time_text(span['mean_ns'])}, {span['share_percent']:g} %")
    for statistic, words in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")):
        lines.append(f"{words}: {time_text(span[f'{statistic}_ns'])}")
    return "<br>".join([*lines, f"count: {span['count']}"])


def time_unit(times_ns: list[float]) -> tuple[int, str]:
    """Return the unit of an axis with these times: how many ns it is, and its sign."""
    return MS if max(times_ns, default=0) >= 10 * MS[0] else US
