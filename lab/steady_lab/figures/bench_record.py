# SPDX-License-Identifier: MIT OR Apache-2.0
"""The record of a boot in which no `steady bench` ran, in the form of its records.

Figures treat all records alike (docs/spec/bench-record-1.schema.json).
"""

from __future__ import annotations

from typing import Any

from steady_lab.figures.workload import Workload


def bench_record(
    workload: Workload,
    settings: dict[str, Any],
    tool: dict[str, Any],
    result: dict[str, Any],
) -> dict[str, Any]:
    """Return the record; `settings` is from `steady with`, `result` has variant and classes."""
    return {
        "schema": "steadyio.bench/1",
        "spec": workload.raw,
        "seed": workload.seed,
        "tool": settings["tool"] | tool,
        "kernel": settings["kernel"],
        "device": settings["device"],
        "unmet": [],
        "results": [
            {"point": None, "knobs": settings["knobs"], "queue": settings["queue"]} | result
        ],
    }
