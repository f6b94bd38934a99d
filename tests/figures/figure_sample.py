# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tiny figure and records in the bench schema with chosen numbers, for unit tests."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

from steady_lab.figures.results import Sources
from steady_lab.figures.spec import Figure, parse_figure
from steady_lab.figures.workload import parse_workload

HERE = Path(__file__).parent
SOURCES = Sources(kernel_config="c" * 64, modules="d" * 64)
DEVICE = {"schema": "steadyio.device/1", "name": "sample"}


def figure_raw() -> dict[str, Any]:
    """Return the tiny figure's parsed TOML, free to be changed."""
    return tomllib.loads((HERE / "tiny.toml").read_text(encoding="utf-8"))


def workload_raw() -> dict[str, Any]:
    """Return the tiny workload's parsed TOML, free to be changed."""
    return tomllib.loads((HERE / "tiny-workload.toml").read_text(encoding="utf-8"))


def figure(raw: dict[str, Any] | None = None, workload: dict[str, Any] | None = None) -> Figure:
    """Return the tiny figure, or one from changed tables."""
    parsed = parse_workload(workload or workload_raw(), "workload")
    return parse_figure(raw or figure_raw(), "figure", (HERE, HERE), parsed)


def stats(histogram_ns: dict[int, int], mib_s: float = 1.5, bs_kib: int = 64) -> dict[str, Any]:
    """Return one class of a record; percentiles are the smallest value that covers them."""
    ordered = sorted(histogram_ns.items())
    count = sum(histogram_ns.values())

    def percentile(per_myriad: int) -> int:
        seen = 0
        for value, n in ordered:
            seen += n
            if seen * 10_000 >= count * per_myriad:
                return value
        raise AssertionError("an empty histogram has no percentile")

    names = {"p50": 5_000, "p95": 9_500, "p99": 9_900, "p999": 9_990, "p9999": 9_999}
    latency_ns = {name: percentile(per_myriad) for name, per_myriad in names.items()}
    return {
        "op": "randread",
        "bs_kib": bs_kib,
        "count": count,
        "bytes": count * bs_kib * 1024,
        "mib_s": mib_s,
        "errors": 0,
        "latency_ns": {"min": ordered[0][0], **latency_ns, "max": ordered[-1][0]},
        "histogram_ns": [list(item) for item in ordered],
    }


def record(variant: str, p99_ms: list[float]) -> dict[str, Any]:
    """Return a record of one variant with the given real-time p99 at the sweep's points."""
    spec = workload_raw()
    results = []
    for point, wanted_ms in zip(spec["sweep"]["values"], p99_ms, strict=True):
        rt = stats({round(wanted_ms * 5e5): 90, round(wanted_ms * 1e6): 10})
        bg = stats({2_000_000: 50}, mib_s=20.25, bs_kib=point)
        total = stats({2_000_000: 150}, mib_s=21.75) | {"bs_kib": None}
        results.append(
            {
                "variant": variant,
                "point": point,
                "knobs": {"scheduler": {"wanted": "k2", "read_back": "k2"}},
                "duration_ns": 1_000_000_000,
                "classes": {"rt": rt, "bg": bg, "total": total},
            }
        )
    return copy.deepcopy(
        {
            "schema": "steadyio.bench/1",
            "spec": spec,
            "seed": 1,
            "tool": {"steady": "0.1.0", "fio": "fio-3.33"},
            "kernel": {"release": "6.1.0", "version": "#1"},
            "device": {"name": "mmcblk0", "size_bytes": 1 << 30},
            "unmet": [],
            "results": results,
        }
    )
