# SPDX-License-Identifier: MIT OR Apache-2.0
"""From what sysbench, dd and `steady with` left in a work folder to a bench record.

The record has the form of `steady bench` records, so that figures treat both alike. What differs:
an "I/O" of class rt is a transaction, whose bytes nobody counts, and dd reports no latencies.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.bench_record import bench_record
from steady_lab.figures.dd_output import throughput
from steady_lab.figures.histogram import nearest_rank
from steady_lab.figures.workload import Workload

NS_PER_MS = 1_000_000
BACKGROUND_KIB = 512
PERCENTILES = {"p50": 5_000, "p95": 9_500, "p99": 9_900, "p999": 9_990, "p9999": 9_999}
BIN = re.compile(r"^ +([0-9.]+) \|\**\s+(\d+)$", re.MULTILINE)


def application_record(workload: Workload, variant: str, folder: Path) -> dict[str, Any]:
    """Return the record of one boot; raises LabError when a program's output is not understood."""
    settings = json.loads(_read(folder / "settings.json"))
    report = _read(folder / "sysbench.txt")
    copied = [_read(path) for path in sorted(folder.glob("dd-*.txt"))]
    tool = {
        "sysbench": _find(r"sysbench (\S+)", report),
        "mariadb": _find(r"Version: '([^']+)'", _read(folder / "mariadb.txt")),
    }
    classes = {"rt": transactions(report), "bg": copies(copied)}
    return bench_record(workload, settings, tool, {"variant": variant, "classes": classes})


def transactions(text: str) -> dict[str, Any]:
    """Return class rt from sysbench's report: its histogram's bins are 1.8 % wide, its minimum and
    maximum are given to 10 us."""
    histogram = [
        (round(float(value) * NS_PER_MS), int(count)) for value, count in BIN.findall(text)
    ]
    count = sum(n for _, n in histogram)
    if count == 0 or count != int(_find(r"total number of events: +(\d+)", text)):
        raise LabError(f"sysbench's histogram has {count} transactions, its report another number")
    low, high = (
        round(float(_find(rf"{name}: +([0-9.]+)", text)) * NS_PER_MS) for name in ("min", "max")
    )
    latency_ns = {
        name: min(max(nearest_rank(histogram, share) or 0, low), high)
        for name, share in PERCENTILES.items()
    }
    return {
        "op": "transaction",
        "bs_kib": None,
        "count": count,
        "bytes": None,
        "mib_s": None,
        "errors": int(_find(r"ignored errors: +(\d+)", text)),
        "latency_ns": {"min": low, **latency_ns, "max": high},
        "histogram_ns": [list(item) for item in histogram],
    }


def copies(outputs: list[str]) -> dict[str, Any]:
    """Return class bg from the outputs of the dd side by side: the sum of their throughputs."""
    if not outputs:
        raise LabError("no output of dd")
    total_bytes, mib_s = 0, 0.0
    for output in outputs:
        copied_bytes, copied_mib_s = throughput(output)
        total_bytes += copied_bytes
        mib_s += copied_mib_s
    return {
        "op": "copy",
        "bs_kib": BACKGROUND_KIB,
        "count": total_bytes // (BACKGROUND_KIB * 1024),
        "bytes": total_bytes,
        "mib_s": round(mib_s, 3),
        "errors": 0,
        "latency_ns": None,
        "histogram_ns": [],
    }


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise LabError(f"sysbench's report has no {pattern!r}:\n{text[-2000:]}")
    return found[1]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from error
