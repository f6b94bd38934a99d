# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers a figure spec derives from measured cells: a cell, a ratio, a spread, a best point.

Checks bound them and the summary's sentences quote them, so a claim and the text about it
come from one definition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from steady_lab.figures.metric import METRICS, Metric
from steady_lab.figures.rows import Measurements, ResultError
from steady_lab.figures.workload import Workload
from steady_lab.toml_table import Point, Table

KINDS = ("cell", "ratio", "spread", "lowest")


class Quantity(Protocol):
    """A number computed from a figure's measurements."""

    @property
    def unit(self) -> str:
        """Return the unit as printed, empty for a pure number."""

    def evaluate(self, measured: Measurements) -> float:
        """Return the number; raises ResultError when a cell is missing or is zero."""


@dataclass(frozen=True)
class Cell:
    """One metric at one point of one variant, in the metric's unit."""

    variant: str
    point: Point
    metric: Metric

    @property
    def unit(self) -> str:
        """Return the metric's unit."""
        return self.metric.unit

    def evaluate(self, measured: Measurements) -> float:
        """Return the measured value."""
        return measured.value(self.variant, self.point, self.metric)


@dataclass(frozen=True)
class Ratio:
    """One cell divided by another, of the same metric."""

    of: Cell
    to: Cell
    unit: str = "x"

    def evaluate(self, measured: Measurements) -> float:
        """Return the quotient; raises ResultError when the divisor is zero."""
        return _divide(self.of.evaluate(measured), self.to.evaluate(measured), self.to.variant)


@dataclass(frozen=True)
class Spread:
    """How far a variant's line is from flat: (largest - smallest) / smallest, in percent."""

    variant: str
    points: tuple[Point, ...]
    metric: Metric
    unit: str = "%"

    def evaluate(self, measured: Measurements) -> float:
        """Return the spread over all points; raises ResultError when the smallest is zero."""
        values = [measured.value(self.variant, point, self.metric) for point in self.points]
        low, high = min(values), max(values)
        return 100.0 * _divide(high - low, low, self.variant)


@dataclass(frozen=True)
class Lowest:
    """The sweep value at which a variant's metric is lowest; the first of equals."""

    variant: str
    points: tuple[Point, ...]
    metric: Metric
    unit: str = ""

    def evaluate(self, measured: Measurements) -> float:
        """Return the sweep value."""
        best = min(self.points, key=lambda at: measured.value(self.variant, at, self.metric))
        return float(best or 0)


def _divide(dividend: float, divisor: float, variant: str) -> float:
    if divisor == 0 or not math.isfinite(dividend / divisor):
        raise ResultError(f"cannot divide by {divisor:g}, measured for variant {variant}")
    return dividend / divisor


def take_quantity(table: Table, workload: Workload) -> Quantity:
    """Read kind, metric and cells from a spec table; raises SpecError on a bad one."""
    kind = table.choice("kind", KINDS)
    metric = take_metric(table, "metric")
    if kind == "ratio":
        of, to = (_cell(table.table(key), workload, metric) for key in ("of", "to"))
        return Ratio(of, to)
    variant = take_variant(table, workload)
    if kind == "cell":
        return Cell(variant, table.point("point", workload.points), metric)
    points = _points(table, workload)
    if kind == "spread":
        return Spread(variant, points, metric)
    if not all(isinstance(point, int) for point in points):
        raise table.fail("kind", "another than lowest: the sweep's values are no numbers")
    return Lowest(variant, points, metric)


def take_metric(table: Table, key: str) -> Metric:
    """Read a metric name such as rt.p99_ms; raises SpecError with the known names."""
    return METRICS[table.choice(key, tuple(METRICS))]


def take_variant(table: Table, workload: Workload) -> str:
    """Read the name of one of the workload's variants; raises SpecError otherwise."""
    return table.choice("variant", tuple(variant.name for variant in workload.variants))


def _cell(table: Table, workload: Workload, metric: Metric) -> Cell:
    cell = Cell(take_variant(table, workload), table.point("point", workload.points), metric)
    table.close()
    return cell


def _points(table: Table, workload: Workload) -> tuple[Point, ...]:
    if not table.has("points"):
        return workload.points
    allowed = "two or more of the sweep's values " + ", ".join(map(str, workload.points))
    points = table.items("points", allowed)
    if len(points) < 2 or any(point not in workload.points for point in points):
        raise table.fail("points", allowed)
    return tuple(points)
