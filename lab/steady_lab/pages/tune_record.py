# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a page shows of the bench record in a tune report, strictly read; it holds more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steady_lab.toml_table import Table

SCHEMA = "steadyio.bench/1"
WHOLE_MAX = (1 << 63) - 1
LATENCIES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
"""Quantiles that a page shows of each measurement, with their percentage."""
CLASSES = {"rt": "real-time", "bg": "background"}

Knobs = dict[str, int]


@dataclass(frozen=True)
class RtLatency:
    """The real-time latencies of one measurement."""

    latency_ns: dict[str, int]  # by the names of LATENCIES, and "max"
    count: int


@dataclass(frozen=True)
class Setup:
    """The measurement: device and workload as they stand in the record, and the programs."""

    device: dict[str, Any]
    workload: dict[str, Any]
    at: str  # with " at " before the point of a sweep
    jobs: list[str]
    provenance: dict[str, str]


def read_setup(record: Table) -> Setup:
    """Return what all measurements share; raises SpecError."""
    record.choice("schema", (SCHEMA,))
    device, workload = record.table("device"), record.table("spec")
    for key in ("name", "disk"):
        device.text(key)
    device.or_null("model", device.text)
    device.integer("size_bytes", 0, WHOLE_MAX)
    workload.text("name")
    results = record.tables("results")
    if not results:
        raise record.fail("results", "one or more [[results]]")
    point = results[0].take("point", "a value of a sweep, or null")
    return Setup(
        device=record.take("device", "a table"),
        workload=record.take("spec", "a table"),
        at="" if point is None else f" at {point}",
        jobs=_jobs(results[0].table("classes")),
        provenance=_provenance(record),
    )


def _jobs(classes: Table) -> list[str]:
    return [
        _job(classes.table(name), words) for name, words in CLASSES.items() if classes.has(name)
    ]


def _job(job: Table, words: str) -> str:
    size = job.or_null("bs_kib", lambda key: job.integer(key, 1, WHOLE_MAX))
    return f"{words} {job.text('op')}" + (f" of {size} KiB" if size else "")


def _provenance(record: Table) -> dict[str, str]:
    kernel = record.table("kernel")
    tools = record.take("tool", "a table").items()
    unmet = [
        f"{each.text('variant')}: {each.text('knob')}: {each.text('reason')}"
        for each in record.tables("unmet")
    ]
    return {
        "Kernel": f"{kernel.text('release')} {kernel.text('version')}",
        "Tools": ", ".join(f"{name} {version}" for name, version in sorted(tools)),
        "Seed": str(record.integer("seed", 0, WHOLE_MAX)),
        "Unmet requirements": "; ".join(unmet) or "none",
    }


def read_rt_latency(record: Table, knobs: Knobs, point: Table) -> RtLatency:
    """Return the latencies of the measurement with these knobs, which `point` has; SpecError."""
    wanted: dict[str, int | str] = {f"iosched/{name}": value for name, value in knobs.items()}
    wanted["scheduler"] = "k2" if knobs else "none"
    for result in record.tables("results"):
        settings = result.table("knobs")
        if all(settings.has(key) and _set(settings, key) == wanted[key] for key in wanted):
            rt = result.table("classes").table("rt")
            latency = rt.table("latency_ns")
            found = {name: latency.integer(name, 0, WHOLE_MAX) for name in (*LATENCIES, "max")}
            return RtLatency(found, rt.integer("count", 1, WHOLE_MAX))
    raise point.fail("knobs", "those of one of [record] [[results]]")


def _set(settings: Table, key: str) -> Any:
    return settings.table(key).take("wanted", "what was set")
