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

KINDS = ("cell", "ratio", "spread", "lowest", "left")
RT_MIB_S, BG_MIB_S = METRICS["rt.mib_s"], METRICS["bg.mib_s"]


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


@dataclass(frozen=True)
class Alone:
    """Where the speeds of one class without the other are: points of a variant."""

    variant: str
    rt: Point
    bg: Point

    def left_mib_s(self, measured: Measurements, variant: str, point: Point) -> float:
        """Return the throughput that a cell's real-time requests leave to unsplit background.

        Their share of the device's time is that of their speed in their speed alone.
        """
        rt_alone = measured.value(self.variant, self.rt, RT_MIB_S)
        busy = _divide(measured.value(variant, point, RT_MIB_S), rt_alone, self.variant)
        return measured.value(self.variant, self.bg, BG_MIB_S) * (1.0 - busy)


@dataclass(frozen=True)
class Left:
    """Background throughput of a cell, in percent of what its real-time requests leave."""

    variant: str
    point: Point
    alone: Alone
    unit: str = "%"

    def evaluate(self, measured: Measurements) -> float:
        """Return the percentage; raises ResultError when nothing is left."""
        left = self.alone.left_mib_s(measured, self.variant, self.point)
        return 100.0 * _divide(
            measured.value(self.variant, self.point, BG_MIB_S), left, self.variant
        )


def _divide(dividend: float, divisor: float, variant: str) -> float:
    if divisor == 0 or not math.isfinite(dividend / divisor):
        raise ResultError(f"cannot divide by {divisor:g}, measured for variant {variant}")
    return dividend / divisor


def take_alone(table: Table, workload: Workload) -> Alone | None:
    """Read a figure's [alone], None if it has none; raises SpecError on a bad one."""
    if not table.has("alone"):
        return None
    alone = table.table("alone")
    rt, bg = (alone.point(key, workload.points) for key in ("rt", "bg"))
    taken = Alone(take_variant(alone, workload), rt, bg)
    alone.close()
    return taken


def take_quantity(table: Table, workload: Workload, alone: Alone | None = None) -> Quantity:
    """Read kind, metric and cells from a spec table; raises SpecError on a bad one."""
    kind = table.choice("kind", KINDS)
    if kind == "left":
        if alone is None:
            raise table.fail("kind", "other than left: the figure has no [alone]")
        return Left(take_variant(table, workload), table.point("point", workload.points), alone)
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
        raise table.fail("kind", "other than lowest: the sweep's values are not numbers")
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
