# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rows of a figure's CSV: one per variant, point and class; written and read back.

The CSV is the public form of a figure's numbers: the README's table is made from it, and
checks can be evaluated from it, so it is written with fixed formats and read strictly.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.metric import CLASSES, NS_PER_MS, Metric
from steady_lab.toml_table import Point

COLUMNS = (
    "figure",
    "variant",
    "point",
    "class",
    "op",
    "bs_kib",
    "min_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p999_ns",
    "p9999_ns",
    "max_ns",
    "count",
    "mib_s",
)


class ResultError(LabError):
    """An unusable record or result file; the text names it, with the reason."""


@dataclass(frozen=True)
class Row:
    """The results of one class at one point of one variant; latencies in nanoseconds.

    None means not reported; the CSV has an empty cell there.
    """

    figure: str
    variant: str
    point: str  # as `point_text` writes it
    class_name: str
    op: str
    bs_kib: str  # a number, or empty where the class mixes sizes
    min_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    p9999_ns: int | None
    max_ns: int | None
    count: int
    mib_s: float | None

    def value(self, metric: Metric) -> float:
        """Return a metric of this row's class, in the metric's unit (ms or MiB/s).

        Raises ResultError when its load generator does not report it.
        """
        found = self.reported(metric)
        if found is None:
            raise ResultError(f"variant {self.variant} has no {metric.name}: it is not reported")
        return found

    def reported(self, metric: Metric) -> float | None:
        """Return the same, None where there is no such value."""
        if metric.statistic == "count":
            return self.count
        if not metric.is_latency:
            return self.mib_s
        latency_ns: int | None = getattr(self, f"{metric.statistic}_ns")
        return None if latency_ns is None else latency_ns / NS_PER_MS


def count_row(
    figure: str, variant: str, point: str, class_name: str, count: int, max_ns: int | None
) -> Row:
    """Return the row of a class that is only counted; `max_ns` is the longest of them."""
    unknown = (None,) * 6
    return Row(figure, variant, point, class_name, "", "", *unknown, max_ns, count, None)


def point_text(point: Point) -> str:
    """Return a sweep value as the CSV writes it; empty without a sweep."""
    return "" if point is None else str(point)


class Measurements:
    """All rows of one figure, found by variant, point and class."""

    def __init__(self, rows: list[Row]) -> None:
        """Index the rows; raises ResultError when two rows describe the same cell."""
        self.rows = rows
        self._index = {(row.variant, row.point, row.class_name): row for row in rows}
        if len(self._index) != len(rows):
            raise ResultError("the same variant, point and class appears twice")

    def row(self, variant: str, point: Point, class_name: str) -> Row:
        """Return one row; raises ResultError when the figure has no such cell."""
        try:
            return self._index[variant, point_text(point), class_name]
        except KeyError:
            cell = f"variant {variant}, point {point_text(point) or '-'}, class {class_name}"
            raise ResultError(f"no result for {cell}") from None

    def value(self, variant: str, point: Point, metric: Metric) -> float:
        """Return one metric of one cell, in ms or MiB/s; raises ResultError if absent."""
        return self.row(variant, point, metric.class_name).value(metric)

    def found(self, variant: str, point: Point, metric: Metric) -> float | None:
        """Return the same, None where the class does not run or does not report it."""
        row = self._index.get((variant, point_text(point), metric.class_name))
        return None if row is None else row.reported(metric)


def csv_text(rows: list[Row]) -> str:
    """Return the rows as CSV with the header of COLUMNS; mib_s has three decimals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(
            [
                row.figure,
                row.variant,
                row.point,
                row.class_name,
                row.op,
                row.bs_kib,
                row.min_ns,
                row.p50_ns,
                row.p95_ns,
                row.p99_ns,
                row.p999_ns,
                row.p9999_ns,
                row.max_ns,
                row.count,
                "" if row.mib_s is None else f"{row.mib_s:.3f}",
            ]
        )
    return out.getvalue()


def read_csv(path: Path) -> Measurements:
    """Read a figure's CSV; raises ResultError naming the file, and the line if one is bad."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            if tuple(next(reader, ())) != COLUMNS:
                raise ResultError(f"{path}: the first line must be {','.join(COLUMNS)}")
            rows = [_row(path, reader.line_num, cells) for cells in reader]
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    return Measurements(rows)


def _row(path: Path, line: int, cells: list[str]) -> Row:
    try:
        figure, variant, point, class_name, op, bs_kib = cells[:6]
        low, p50, p95, p99, p999, p9999, top = (int(cell) if cell else None for cell in cells[6:13])
        count = int(cells[13])
        (mib_s,) = (float(cell) if cell else None for cell in cells[14:])
    except (ValueError, IndexError) as error:
        raise ResultError(f"{path}:{line}: {error}") from error
    if class_name not in CLASSES:
        raise ResultError(f"{path}:{line}: class {class_name!r} must be one of {CLASSES}")
    latencies = (low, p50, p95, p99, p999, p9999, top)
    return Row(figure, variant, point, class_name, op, bs_kib, *latencies, count, mib_s)
