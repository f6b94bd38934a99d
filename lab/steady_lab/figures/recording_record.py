# SPDX-License-Identifier: MIT OR Apache-2.0
"""From what `steady record`, dd and `steady with` left in a work folder to a bench record.

The record has the form of `steady bench` records, so that figures treat both alike. Class rt is the
caller: an "I/O" is a write() or an append(), and lost records count as errors. Class bg is the dd
beside it, or, where there is none, the recorder's own changes from one file or segment to the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.bench_record import bench_record
from steady_lab.figures.dd_output import throughput
from steady_lab.figures.recording import BESIDE_OUTPUT, RESULT
from steady_lab.figures.workload import Workload

KIB = 1 << 10
MIB = 1 << 20
RESULT_SCHEMA = "steadyio.recording/1"


def recording_record(workload: Workload, variant: str, folder: Path) -> dict[str, Any]:
    """Return the record of one boot; raises LabError when the recording did not end well."""
    settings = json.loads(_read(folder / "settings.json"))
    found = json.loads(_read(folder / RESULT))
    if found["schema"] != RESULT_SCHEMA or found["ended"] != "finished":
        raise LabError(
            f"{folder / RESULT}: schema {found['schema']!r}, ended {found.get('ended')!r}; wanted "
            f"{RESULT_SCHEMA!r}, 'finished'"
        )
    classes = {"rt": _caller(found), "bg": _beside(found, folder)}
    result = {"variant": variant, "classes": classes, "recording": found}
    return bench_record(workload, settings, {}, result)


def _caller(found: dict[str, Any]) -> dict[str, Any]:
    calls, total = found["caller"]["calls"], found["ledger"]["total"]
    return {
        "op": found["caller"]["call"],
        "bs_kib": found["config"]["record_bytes"] // KIB,
        "count": calls["count"],
        "bytes": total["received"]["bytes"],
        "mib_s": found["payload_mib_s"],
        "errors": total["lost_ring_full"]["records"] + total["lost_in_writing"]["records"],
        "latency_ns": calls["latency_ns"],
        "histogram_ns": calls["histogram_ns"],
    }


def _beside(found: dict[str, Any], folder: Path) -> dict[str, Any]:
    dd = folder / BESIDE_OUTPUT
    if dd.exists():
        copied_bytes, mib_s = throughput(_read(dd))
        return _class("dd", copied_bytes // MIB, copied_bytes, mib_s, None)
    if found["pool"]:
        changes, op = found["pool"]["rotations"], "rotation"
    else:
        changes, op = found["caller_writes"]["file_changes"], "file_change"
    return _class(op, changes["count"], 0, None, changes)


def _class(
    op: str, count: int, moved_bytes: int, mib_s: float | None, times: dict[str, Any] | None
) -> dict[str, Any]:
    timed = times is not None and times["count"] > 0
    return {
        "op": op,
        "bs_kib": None,
        "count": count,
        "bytes": moved_bytes,
        "mib_s": None if mib_s is None else round(mib_s, 3),
        "errors": 0,
        "latency_ns": times["latency_ns"] if times and timed else None,
        "histogram_ns": times["histogram_ns"] if times and timed else [],
    }


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from error
