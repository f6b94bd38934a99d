# SPDX-License-Identifier: MIT OR Apache-2.0
"""A record of `steady bench --out` as a section of the page: the plot and tables of a figure.

The record has what a figure's result has, but for the figure: that is made here, without claims.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.results import (
    RECORD_SCHEMA,
    FigureResult,
    result_rows,
)
from steady_lab.figures.rows import Measurements
from steady_lab.figures.spec import FIGURE_SCHEMA
from steady_lab.pages.given_files import read_given, refuse_same_names
from steady_lab.pages.report import Section, make_section

OPTION = "--bench"


def read_bench_sections(paths: Sequence[Path]) -> list[Section]:
    """Return a section per record; raises LabError for one that cannot be read or shown."""
    sections = [_section(path) for path in paths]
    refuse_same_names(OPTION, [section.figure.name for section in sections], "records")
    return sections


def _section(path: Path) -> Section:
    record, _ = read_given(OPTION, path, RECORD_SCHEMA, "steady bench --out")
    try:
        return make_section(_result(path, record), f"steady-lab report {OPTION} {path.name}")
    except (KeyError, TypeError, IndexError) as error:
        raise LabError(f"{OPTION} {path}: not a whole record of steady bench: {error!r}") from error


def _result(path: Path, record: dict[str, Any]) -> FigureResult:
    name = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-._")[:64] or "record"
    results = record["results"]
    workload = _measured_part(record["spec"], results)
    document = {
        "figure": _figure(name, workload, record),
        "device": record["device"],
        "workload": workload,
        "seed": record["seed"],
        "tool": {key: value for key, value in record["tool"].items() if value},
        "kernel": record["kernel"],
        "unmet": record["unmet"],
        "results": results,
    }
    return FigureResult(path, document, Measurements(result_rows(name, results)))


def _measured_part(spec: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the workload with the variants and points that were run."""
    variants = {result["variant"] for result in results}
    points = [result["point"] for result in results]
    part = spec | {"variant": [one for one in spec["variant"] if one["name"] in variants]}
    if "sweep" in spec:
        values = [value for value in spec["sweep"]["values"] if value in points]
        part["sweep"] = spec["sweep"] | {"values": values}
    return part


def _figure(name: str, workload: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    classes = {
        key for result in record["results"] for key, value in result["classes"].items() if value
    }
    first = "rt" if "rt" in classes else "bg"
    cost = "bg" if "bg" in classes else first
    words = {"rt": "real-time", "bg": "background"}
    errors = sum(
        stats["errors"] for result in record["results"]
        for stats in result["classes"].values() if stats
    )  # fmt: skip
    sweep, kernel = workload.get("sweep", {}), record["kernel"]["release"]
    plot = {
        "x_label": sweep.get("key", workload["name"]),
        "y_label": f"p99 latency of {words[first]} requests (ms)",
        "y_metric": f"{first}.p99_ms",
        "cost_label": f"Throughput of the {words[cost]} class (MiB/s)",
        "cost_metric": f"{cost}.mib_s",
        "highlight": [variant["name"] for variant in workload["variant"]],
        "detail_label": workload["name"],
    }
    if sweep:
        plot |= {"detail_point": sweep["values"][-1], "detail_label": str(sweep["values"][-1])}
    failed = f" {errors} I/Os failed." if errors else ""
    return {
        "schema": FIGURE_SCHEMA,
        "name": name,
        "title": workload.get("title", workload["name"]),
        "source": f"steady bench on {record['device']['name']}, Linux {kernel}",
        "text": f"One measurement of the workload {workload['name']}; no claim is checked.{failed}",
        "device": record["device"]["name"],
        "workload": workload["name"],
        "plot": plot,
        "summary": {"text": f"Latencies are of {words[first]} requests."},
    }
