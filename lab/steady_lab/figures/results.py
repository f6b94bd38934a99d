# SPDX-License-Identifier: MIT OR Apache-2.0
"""From bench records to a figure's result: merge, write, read.

Every boot leaves one bench record (docs/spec/). The result of a figure joins
them with everything that decided the numbers, in spec order and without dates, paths or
host names, so identical sources give identical bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from steady_lab.figures.metric import CLASSES
from steady_lab.figures.rows import (
    Measurements,
    ResultError,
    Row,
    count_row,
    csv_text,
    point_text,
)
from steady_lab.figures.spec import Figure
from steady_lab.toml_table import Point

RECORD_SCHEMA = "steadyio.bench/1"
RESULT_SCHEMA = "steadyio.figure-result/1"
SHARED_KEYS = ("spec", "tool", "kernel", "device")
"""What all records of one figure must agree on, for their results to be comparable."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Sources:
    """Hashes (sha256, hex) of the guest's kernel and modules, stored with the result."""

    kernel_config: str
    modules: str


class Drawable(Protocol):
    """What tables and plots need of a figure's result."""

    @property
    def measured(self) -> Measurements:
        """Return the rows."""

    def histogram_ns(self, variant: str, point: Point, class_name: str) -> list[tuple[int, int]]:
        """Return [(latency ns, count)] of one cell, ascending; empty when it has none."""


@dataclass(frozen=True)
class FigureResult:
    """A result file as read back: the document, and its rows."""

    path: Path
    document: dict[str, Any]
    measured: Measurements

    def histogram_ns(self, variant: str, point: Point, class_name: str) -> list[tuple[int, int]]:
        """Return [(latency ns, count)] of one cell, ascending; empty when it has none."""
        for result in self.document["results"]:
            if result["variant"] == variant and result["point"] == point:
                histogram = result["classes"].get(class_name, {}).get("histogram_ns", [])
                return [(int(value), int(count)) for value, count in histogram]
        raise ResultError(f"{self.path}: no result for variant {variant}, point {point}")


def read_record(path: Path, figure: Figure, variant: str) -> Record:
    """Read the record of one boot and check that it answers what the figure asked.

    Raises ResultError when it cannot be read, is of another schema, lacks a point, or
    when I/O errors happened, which no figure may hide.
    """
    record = _read_json(path)
    if record.get("schema") != RECORD_SCHEMA:
        raise ResultError(f"{path}: schema {record.get('schema')!r} must be {RECORD_SCHEMA!r}")
    found = [(result["variant"], result["point"]) for result in record["results"]]
    wanted = [(variant, point) for point in figure.workload.points]
    if found != wanted:
        raise ResultError(f"{path}: results are {found}, wanted {wanted}")
    for result in record["results"]:
        for class_name, stats in result["classes"].items():
            if stats and stats["errors"]:
                cell = f"{variant}, point {point_text(result['point']) or '-'}, {class_name}"
                raise ResultError(f"{path}: {stats['errors']} I/O errors at {cell}")
    return record


def merge(figure: Figure, device: dict[str, Any], records: list[Record], sources: Sources) -> str:
    """Return the figure's result document as text, from one record per variant in order.

    Raises ResultError when the records disagree on what ran, tool, kernel or device.
    """
    first = records[0]
    for key in SHARED_KEYS:
        values = [record[key] for record in records]
        if any(value != values[0] for value in values):
            raise ResultError(f"{figure.name}: the variants' records differ in {key}: {values}")
    document = {
        "schema": RESULT_SCHEMA,
        "figure": figure.raw,
        "device": {"spec": device, "seen": first["device"]},
        "workload": figure.workload.raw,
        "seed": figure.workload.seed,
        "tool": first["tool"],
        "kernel": {
            "release": first["kernel"]["release"],
            "config_sha256": sources.kernel_config,
            "modules_sha256": sources.modules,
        },
        "unmet": _in_order_once([item for record in records for item in record["unmet"]]),
    }
    results = [result for record in records for result in record["results"]]
    return document_text(document, results)


def document_text(document: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """Return canonical JSON, one top-level key and one result per line, so diffs are short."""
    lines = [f"{_compact(key)}: {_compact(value)}" for key, value in document.items()]
    body = ",\n".join(_compact(result) for result in results)
    lines.append(f'"results": [\n{body}\n]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def result_rows(name: str, results: list[dict[str, Any]]) -> list[Row]:
    """Return the CSV rows of bench results, classes in the order of CLASSES."""
    rows = []
    for result in results:
        found = [name for name in CLASSES if result["classes"].get(name)]
        rows += [_row(name, result, class_name) for class_name in found]
        rows += _blocked_rows(name, result)
    return rows


def write_result(figure: Figure, text: str, folder: Path) -> Measurements:
    """Write NAME.json and NAME.csv to `folder`, each in one step; return the rows."""
    rows = result_rows(figure.name, json.loads(text)["results"])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{figure.name}.json", text)
    write_atomically(folder / f"{figure.name}.csv", csv_text(rows))
    return Measurements(rows)


def read_result(path: Path) -> FigureResult:
    """Read NAME.json; raises ResultError when it is unreadable or of another schema."""
    document = _read_json(path)
    if document.get("schema") != RESULT_SCHEMA:
        raise ResultError(f"{path}: schema {document.get('schema')!r} must be {RESULT_SCHEMA!r}")
    rows = result_rows(document["figure"]["name"], document["results"])
    return FigureResult(path, document, Measurements(rows))


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that an interruption leaves the old one or the new one; raises OSError."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _row(name: str, result: dict[str, Any], class_name: str) -> Row:
    stats = result["classes"][class_name]
    latency_ns = stats["latency_ns"]
    return Row(
        figure=name,
        variant=result["variant"],
        point=point_text(result["point"]),
        class_name=class_name,
        op=str(stats.get("op") or ""),
        bs_kib="" if stats.get("bs_kib") is None else str(stats["bs_kib"]),
        min_ns=latency_ns["min"],
        p50_ns=latency_ns["p50"],
        p95_ns=latency_ns["p95"],
        p99_ns=latency_ns["p99"],
        p999_ns=latency_ns["p999"],
        p9999_ns=latency_ns["p9999"],
        max_ns=latency_ns["max"],
        count=stats["count"],
        mib_s=stats["mib_s"],
    )


def _blocked_rows(name: str, result: dict[str, Any]) -> list[Row]:
    blocked = result.get("blocked")
    if blocked is None:
        return []
    cell = (name, result["variant"], point_text(result["point"]))
    return [
        count_row(*cell, "blocked", blocked["count"], blocked["max_ns"]),
        count_row(*cell, "over", blocked["over"], None),
        count_row(*cell, "unguarded", blocked["unguarded"], blocked["unguarded_max_ns"]),
    ]


def _in_order_once(items: list[Any]) -> list[Any]:
    return [item for n, item in enumerate(items) if item not in items[:n]]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise ResultError(f"{path}: must be a JSON object")
    return document
