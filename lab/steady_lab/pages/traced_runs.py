# SPDX-License-Identifier: MIT OR Apache-2.0
"""Committed traces: docs/results/records/traces-NAME/, which tests/bench/spans.py writes.

One `steadyio.trace/1` record per place, size and load, as `steady trace --json` printed it, and
runs.json with what fio saw of the same run. The kernel's release is its number only: what
distributors and machines append to it may be a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.results import write_atomically
from steady_lab.figures.traced_loads import PLACES, TracedLoad, TracedLoads
from steady_lab.root.steady_command import steady_json

RUNS_FILE = "runs.json"
RUNS_SCHEMA = "steadyio.traced-runs/1"


@dataclass(frozen=True)
class Key:
    """Which load, where, and in which size."""

    place: str
    size_kib: int
    load: TracedLoad

    @property
    def name(self) -> str:
        """Return the name of the record's file, without suffix."""
        return f"{self.place}-{self.size_kib}k-{self.load.name}"


@dataclass(frozen=True)
class TracedRun:
    """One traced run; `group` is what the record has of its I/Os, `limits_mib_s` the model's."""

    key: Key
    group: dict[str, Any]
    worst: dict[str, Any]
    limits_mib_s: dict[str, float]
    ios: int
    measured_mib_s: float

    def span(self, name: str) -> dict[str, Any]:
        """Return the figures of a span."""
        found: dict[str, Any] = next(s for s in self.group["spans"] if s["span"] == name)
        return found

    @property
    def total_us(self) -> float:
        """Return the mean time of an I/O."""
        return float(self.group["total"]["mean_ns"]) / 1000


@dataclass(frozen=True)
class TracedRuns:
    """All runs of a folder, in the spec's order, and what they ran on."""

    runs: tuple[TracedRun, ...]
    kernel: str
    fio: str
    cpus: int

    def of(self, place: str, size_kib: int) -> list[TracedRun]:
        """Return the runs of a place and a size."""
        return [run for run in self.runs if (run.key.place, run.key.size_kib) == (place, size_kib)]


def all_keys(loads: TracedLoads) -> list[Key]:
    """Return what a whole measurement has."""
    return [
        Key(place, size_kib, load)
        for place in PLACES
        for size_kib in loads.sizes_kib
        for load in loads.loads
    ]


def write_record(key: Key, printed: str, folder: Path) -> dict[str, Any]:
    """Write what `steady trace --json` printed, and return it; raises OSError."""
    record: dict[str, Any] = json.loads(printed)
    release = re.match(r"[0-9.]*[0-9]", record["kernel"]["release"])
    record["kernel"]["release"] = release[0] if release else "?"
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    write_atomically(folder / f"{key.name}.json", text + "\n")
    return record


def write_runs(fio: str, cpus: int, runs: dict[str, dict[str, float]], folder: Path) -> None:
    """Write runs.json: per record's name `ios` and `mib_s`, as fio counted; raises OSError."""
    document = {"schema": RUNS_SCHEMA, "fio": fio, "cpus": cpus, "runs": runs}
    write_atomically(folder / RUNS_FILE, json.dumps(document, indent=1) + "\n")


def read_runs(keys: Sequence[Key], folder: Path) -> TracedRuns:
    """Read the runs asked for; raises LabError for one that is missing or has no such I/Os."""
    document = _json(folder / RUNS_FILE)
    runs, kernels = [], set()
    for key in keys:
        path = folder / f"{key.name}.json"
        record = _json(path)
        kernels.add(record["kernel"]["release"])
        group = _of(key, record["ios"], "size_bytes_max")
        model = _of(key, steady_json("model", str(path), "--json")["predictions"], "size_bytes")
        if group is None or model is None or not record["worst_ios"]:
            raise LabError(f"{path}: has no {key.load.op} of {key.size_kib} KiB")
        seen = document["runs"][key.name]
        runs.append(
            TracedRun(
                *(key, group, record["worst_ios"][0], model["limits_mib_s"]),
                *(seen["ios"], seen["mib_s"]),
            )
        )
    return TracedRuns(tuple(runs), ", ".join(sorted(kernels)), document["fio"], document["cpus"])


def _of(key: Key, entries: list[dict[str, Any]], size: str) -> dict[str, Any] | None:
    wanted = (key.load.op, key.size_kib << 10)
    return next((entry for entry in entries if (entry["op"], entry[size]) == wanted), None)


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path}: cannot be read ({error}): run tests/bench/spans.py --write"
        ) from error
    return found
