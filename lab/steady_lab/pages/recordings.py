# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of recordings: how long the caller's calls waited, and published values.

In virtual time a call takes only the time that it was blocked; one that never blocks takes as long
as reading the clock. The ext4 recording paper measured both its waiting
and its work on the CPU, so what is compared is its longest call less its shortest one, which did
not wait.
"""

from __future__ import annotations

from steady_lab.errors import LabError
from steady_lab.figures.metric import METRICS, Metric
from steady_lab.figures.recording import MEMORY
from steady_lab.figures.results import Drawable
from steady_lab.figures.rows import Row
from steady_lab.figures.spec import Figure, Published
from steady_lab.figures.table import TextTable, format_number
from steady_lab.pages.published import NEAR

US_PER_MS = 1000
NS_PER_US = 1000
# Reading the clock moves virtual time by 256 ns, and a call is measured by reading it twice.
UNBLOCKED_NS_MAX = 1000
READER = Metric("bg", "mib_s")
STATISTICS = ("p50", "p99", "p999", "max")


def calls_table(figure: Figure, result: Drawable) -> str:
    """Return how many calls of each recipe waited, and how long, as Markdown."""
    body = []
    with_dd = any(row.op == "dd" for row in result.measured.rows)
    for variant in figure.workload.variants:
        if variant.place == MEMORY and not with_dd:
            continue
        histogram = result.histogram_ns(variant.name, None, "rt")
        row, background = (result.measured.row(variant.name, None, name) for name in ("rt", "bg"))
        waited = sum(count for latency_ns, count in histogram if latency_ns > UNBLOCKED_NS_MAX)
        latencies_ns = (getattr(row, f"{statistic}_ns") for statistic in STATISTICS)
        body.append(
            [variant.title, f"`{variant.recipe}`", str(row.count), str(waited)]
            + [_waited_us(latency_ns) for latency_ns in latencies_ns]
            + [_background(background)]
            + ([_of_alone(figure, result, background)] if with_dd else [])
        )
    header = ["", "recipe", "calls", "that waited", "p50", "p99", "p99.9", "max"]
    header += ["dd, MiB/s", "of its own"] if with_dd else ["at a new file"]
    return TextTable(f"**{figure.title}**; waiting in us", header, body).markdown()


def _background(row: Row) -> str:
    """Return dd's throughput, or the caller's longest wait for another file.

    The writer thread rotates the pool's segments; the caller continues meanwhile.
    """
    if row.op == "dd":
        return format_number(row.mib_s or 0)
    return "0" if row.op == "rotation" else _waited_us(row.max_ns)


def _of_alone(figure: Figure, result: Drawable, background: Row) -> str:
    """Return dd's throughput, relative to that next to a recorder without the card."""
    free = next((v.name for v in figure.workload.variants if v.place == MEMORY), None)
    if free is None:
        return "-"
    alone = result.measured.value(free, None, READER)
    return f"{100 * (background.mib_s or 0) / alone:.1f} %"


def _waited_us(latency_ns: int | None) -> str:
    if latency_ns is None:
        return "-"
    return "0" if latency_ns <= UNBLOCKED_NS_MAX else f"{latency_ns / NS_PER_US:.0f}"


def published_table(figure: Figure, result: Drawable) -> str:
    """Return its longest calls next to ours, as Markdown; raises LabError for a lost reason."""
    reasons: list[str] = []
    body = []
    for longest in _published(figure, "rt.max_ms"):
        shortest = next(
            item
            for item in _published(figure, "rt.min_ms")
            if (item.cell.variant, item.where) == (longest.cell.variant, longest.where)
        )
        theirs_us = (longest.value - shortest.value) * US_PER_MS
        ours_ns = result.measured.row(longest.cell.variant, None, "rt").max_ns or 0
        ours_us = 0.0 if ours_ns <= UNBLOCKED_NS_MAX else ours_ns / NS_PER_US
        ratio = ours_us / theirs_us
        body.append(
            [
                figure.workload.title_of(longest.cell.variant),
                longest.where,
                f"{shortest.value * US_PER_MS:.0f}",
                f"{longest.value * US_PER_MS:.0f}",
                f"{theirs_us:.0f}",
                f"{ours_us:.0f}",
                f"{ratio:.2f}{_note(figure, longest, ratio, reasons)}",
            ]
        )
    header = ["", "paper", "shortest", "longest", "difference", "here", "ratio"]
    table = TextTable("Longest call in us: the paper's, and the waiting here", header, body)
    notes = [f"[{n}] {reason}  " for n, reason in enumerate(reasons, 1)]
    return "\n".join([table.markdown(), "", *notes]).rstrip()


def _published(figure: Figure, metric: str) -> list[Published]:
    return [item for item in figure.published if item.cell.metric == METRICS[metric]]


def _note(figure: Figure, item: Published, ratio: float, reasons: list[str]) -> str:
    if NEAR[0] <= ratio <= NEAR[1]:
        return ""
    if not item.reason:
        raise LabError(
            f"{figure.name}: [[published]] {item.cell.variant}, {item.where}: needs a `reason`, as "
            f"ours / published is {ratio:.2f}"
        )
    if item.reason not in reasons:
        reasons.append(item.reason)
    return f" [{reasons.index(item.reason) + 1}]"
