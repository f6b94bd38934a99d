# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of measured values, as figure specs write them: `rt.p99_ms`, `total.mib_s`.

A name is class, dot, statistic, unit last. Classes are those of I/O, and three of waiting:
`blocked`, real-time requests that waited in the scheduler for background; `over`, those that waited
longer than the bound; `unguarded`, those for background that its bound does not cover.
Latencies are stored in nanoseconds and shown in milliseconds; throughput is in MiB/s in both
places.
"""

from __future__ import annotations

from dataclasses import dataclass

CLASSES = ("rt", "bg", "total", "blocked", "over", "unguarded")
CLASS_WORDS = {
    "rt": "real-time",
    "bg": "background",
    "total": "total",
    "blocked": "blocked by background",
    "over": "blocked for longer than the bound",
    "unguarded": "blocked by unguarded background",
}
LATENCIES = {
    "min": "min",
    "p50": "p50",
    "p95": "p95",
    "p99": "p99",
    "p999": "p99.9",
    "p9999": "p99.99",
    "max": "max",
}
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Metric:
    """One statistic of one class."""

    class_name: str
    statistic: str  # a key of LATENCIES, "mib_s" or "count"

    @property
    def is_latency(self) -> bool:
        """Tell whether values are latencies (ms) rather than throughput (MiB/s)."""
        return self.statistic in LATENCIES

    @property
    def unit(self) -> str:
        """Return the unit as printed."""
        units = {"mib_s": "MiB/s", "count": ""}
        return "ms" if self.is_latency else units[self.statistic]

    @property
    def label(self) -> str:
        """Return the metric in words, without the unit."""
        words = LATENCIES | {"mib_s": "throughput", "count": "count"}
        what = words[self.statistic]
        return f"{CLASS_WORDS[self.class_name]} {what}"

    @property
    def name(self) -> str:
        """Return the name as written in specs."""
        suffix = f"{self.statistic}_ms" if self.is_latency else self.statistic
        return f"{self.class_name}.{suffix}"


METRICS: dict[str, Metric] = {
    metric.name: metric
    for class_name in CLASSES
    for metric in (Metric(class_name, statistic) for statistic in (*LATENCIES, "mib_s", "count"))
}
