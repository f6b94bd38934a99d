# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of real-time streams and a background: for each point, what every scheduler gives both.

For figures with [alone]: it says where the speeds of one class without the other are.
"""

from __future__ import annotations

from steady_lab.errors import LabError
from steady_lab.figures.metric import LATENCIES, METRICS, Metric
from steady_lab.figures.quantity import Alone, Left
from steady_lab.figures.rows import Measurements, ResultError, point_text
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable, figure_tables, format_number
from steady_lab.toml_table import Point

BACKGROUND = METRICS["bg.mib_s"]
STATISTICS = ("p50", "p99", "p999", "max")
BLOCKED_MAX, OVER = METRICS["blocked.max_ms"], METRICS["over.count"]
UNGUARDED, UNGUARDED_MAX = METRICS["unguarded.count"], METRICS["unguarded.max_ms"]


def result_tables(figure: Figure, measured: Measurements) -> list[TextTable]:
    """Return a figure's tables as terminal, report and pages show them."""
    make = stream_tables if figure.alone else figure_tables
    return make(figure, measured)


def stream_tables(figure: Figure, measured: Measurements) -> list[TextTable]:
    """Return one table per point but those of [alone]; raises LabError without it."""
    alone = figure.alone
    if alone is None:
        raise LabError(f"{figure.name}: has no [alone]")
    return [stream_table(figure, measured, alone, point) for point in figure.shown_points]


def stream_table(figure: Figure, measured: Measurements, alone: Alone, point: Point) -> TextTable:
    """Return what every variant gives both classes at one point."""
    variants = figure.workload.variants
    at = [row for row in measured.rows if row.point == point_text(point)]
    has_blocked = any(row.class_name == "blocked" for row in at)
    header = [f"{LATENCIES[name]} ms" for name in STATISTICS]
    header += ["background MiB/s", "of the throughput left"]
    if has_blocked:
        header += ["longest blocked ms", "over the bound", "unguarded"]
    counts = ", ".join(sorted({str(measured.row(v.name, point, "rt").count) for v in variants}))
    return TextTable(
        f"{_caption(figure, point)} (real-time requests: {counts})",
        ["", *header],
        [[v.title, *_cells(measured, alone, v.name, point, has_blocked)] for v in variants],
    )


def headline_table(figure: Figure, measured: Measurements) -> TextTable:
    """Return latency, bound and background throughput of the figure's `headline` variants.

    At the plot's point. Raises LabError if the figure names no such variants.
    """
    if not figure.headline:
        raise LabError(f"{figure.name}: has no headline")
    point = figure.plot.detail_point
    header = [f"{LATENCIES[name]} (ms)" for name in STATISTICS]
    rows = [
        [variant.title, *_headline_cells(figure, measured, variant.name)]
        for variant in figure.workload.variants
        if variant.name in figure.headline
    ]
    count = measured.row(figure.headline[0], point, "rt").count
    caption = f"Latency of {count} real-time requests, and background throughput"
    return TextTable(caption, ["scheduler", *header, "bound (ms)", "background (MiB/s)"], rows)


def _headline_cells(figure: Figure, measured: Measurements, variant: str) -> list[str]:
    point = figure.plot.detail_point
    metrics = [Metric("rt", name) for name in STATISTICS]
    cells = [format_number(measured.value(variant, point, metric)) for metric in metrics]
    bound_ms = figure.headline_bound_ms.get(variant)
    cells.append("none" if bound_ms is None else format_number(bound_ms))
    return [*cells, format_number(measured.value(variant, point, BACKGROUND))]


def _caption(figure: Figure, point: Point) -> str:
    return f"{figure.title}: {point_text(point)}" if figure.is_swept else figure.title


def _cells(
    measured: Measurements, alone: Alone, variant: str, point: Point, has_blocked: bool
) -> list[str]:
    latencies = [measured.value(variant, point, Metric("rt", name)) for name in STATISTICS]
    cells = [format_number(value) for value in latencies]
    cells.append(format_number(measured.value(variant, point, BACKGROUND)))
    cells.append(f"{Left(variant, point, alone).evaluate(measured):.0f} %")
    if has_blocked:
        cells += _blocked_cells(measured, variant, point)
    return cells


def _blocked_cells(measured: Measurements, variant: str, point: Point) -> list[str]:
    try:
        longest = format_number(measured.value(variant, point, BLOCKED_MAX))
        over = measured.value(variant, point, OVER)
        unguarded = measured.value(variant, point, UNGUARDED)
        worst = format_number(measured.value(variant, point, UNGUARDED_MAX))
    except ResultError:
        return ["", "", ""]
    return [longest, f"{over:.0f}", f"{unguarded:.0f} ({worst} ms)" if unguarded else "0"]
