# SPDX-License-Identifier: MIT OR Apache-2.0
"""Committed traces: docs/results/records/traces-NAME/, which tests/bench/spans.py writes.

Of each place, size and load the `steadyio.trace/1` record of one run, as `steady trace --json`
printed it: that in the middle of several by its mean time. runs.json has the means of all of them,
and what fio saw, in the lab also of a run that was not traced. The kernel's release is its number
only, and there are no cgroups: what distributors and machines call them may be a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.results import write_atomically
from steady_lab.figures.traced_loads import Place, TracedLoad, TracedLoads
from steady_lab.root.steady_command import steady_json

RUNS_FILE = "runs.json"
RUNS_SCHEMA = "steadyio.traced-runs/2"
# One run: the mean of each span in us, the share of software in percent, and fio's figures.
Means = dict[str, float]


@dataclass(frozen=True)
class Key:
    """Which load, where, and in which size."""

    place: Place
    size_kib: int
    load: TracedLoad

    @property
    def name(self) -> str:
        """Return the name of the record's file, without suffix."""
        return f"{self.place.name}-{self.size_kib}k-{self.load.name}"

    @property
    def ios(self) -> int:
        """Return how many I/Os a run has."""
        return self.place.ios[self.size_kib]


@dataclass(frozen=True)
class TracedRun:
    """The run in the middle, and the means of all (`of_runs`).

    `group` is what the record has of its I/Os, `limits_mib_s` the model's.
    """

    key: Key
    group: dict[str, Any]
    worst: dict[str, Any]
    limits_mib_s: dict[str, float]
    of_runs: tuple[Means, ...]

    def span(self, name: str) -> dict[str, Any]:
        """Return the figures of a span."""
        found: dict[str, Any] = next(s for s in self.group["spans"] if s["span"] == name)
        return found

    def median(self, name: str) -> float:
        """Return the median over all runs of one of their means."""
        return median(means[name] for means in self.of_runs)

    @property
    def total_us(self) -> float:
        """Return the mean time of an I/O."""
        return float(self.group["total"]["mean_ns"]) / 1000


@dataclass(frozen=True)
class Machine:
    """What the runs of a place ran on."""

    kernel: str
    fio: str
    cpus: int


@dataclass(frozen=True)
class TracedRuns:
    """All runs of a folder, in the spec's order, and their machines, by place."""

    runs: tuple[TracedRun, ...]
    machines: dict[str, Machine]

    def of(self, place: Place, size_kib: int) -> list[TracedRun]:
        """Return the runs of a place and a size."""
        return [run for run in self.runs if (run.key.place, run.key.size_kib) == (place, size_kib)]

    def of_place(self, place: Place) -> list[TracedRun]:
        """Return the runs of a place."""
        return [run for run in self.runs if run.key.place == place]


def all_keys(loads: TracedLoads) -> list[Key]:
    """Return the keys of a complete measurement."""
    return [
        Key(place, size_kib, load)
        for place in loads.places
        for size_kib in place.ios
        for load in loads.loads
    ]


def means_of(key: Key, record: dict[str, Any]) -> Means:
    """Return a run for runs.json, without fio's speeds; raises LabError without I/Os."""
    group = _of(key, record["ios"], "size_bytes_max")
    if group is None:
        raise LabError(f"{key.name}: has no {key.load.op} of {key.size_kib} KiB")
    spans = {f"{one['span']}_us": round(one["mean_ns"] / 1000, 3) for one in group["spans"]}
    return spans | {"software_percent": group["software_percent"], "ios": group["count"]}


def write_record(key: Key, printed: str, folder: Path) -> dict[str, Any]:
    """Write what `steady trace --json` printed, and return it; raises OSError."""
    record: dict[str, Any] = json.loads(printed)
    release = re.match(r"[0-9.]*[0-9]", record["kernel"]["release"])
    record["kernel"]["release"] = release[0] if release else "?"
    record["cgroups"] = []
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    write_atomically(folder / f"{key.name}.json", text + "\n")
    return record


def write_runs(
    machines: dict[str, dict[str, Any]], runs: dict[str, list[Means]], folder: Path
) -> None:
    """Write runs.json: `machines` by place have `fio` and `cpus`; raises OSError."""
    document = {"schema": RUNS_SCHEMA, "machines": machines, "runs": runs}
    write_atomically(folder / RUNS_FILE, json.dumps(document, separators=(",", ":")) + "\n")


def add_runs(more: Path, folder: Path) -> None:
    """Merge a folder's runs.json into that of another, and replace equal keys there."""
    found, target = _json(more / RUNS_FILE), folder / RUNS_FILE
    before = _json(target) if target.exists() else {}
    if before.get("schema") == RUNS_SCHEMA:
        for key in ("machines", "runs"):
            found[key] = before[key] | found[key]
    write_runs(found["machines"], found["runs"], folder)


def read_runs(keys: Sequence[Key], folder: Path) -> TracedRuns:
    """Read the runs asked for; raises LabError for one that is missing or has no such I/Os."""
    document = _json(folder / RUNS_FILE)
    runs: list[TracedRun] = []
    machines: dict[str, Machine] = {}
    for key in keys:
        path = folder / f"{key.name}.json"
        record = _json(path)
        place = key.place.name
        machines[place] = Machine(record["kernel"]["release"], **document["machines"][place])
        group = _of(key, record["ios"], "size_bytes_max")
        model = _of(key, steady_json("model", str(path), "--json")["predictions"], "size_bytes")
        if group is None or model is None or not record["worst_ios"]:
            raise LabError(f"{path}: has no {key.load.op} of {key.size_kib} KiB")
        limits, of_runs = model["limits_mib_s"], tuple(document["runs"][key.name])
        runs.append(TracedRun(key, group, record["worst_ios"][0], limits, of_runs))
    return TracedRuns(tuple(runs), machines)


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
