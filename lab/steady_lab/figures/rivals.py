# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where another scheduler or setting is better than k2's default, at every point of a figure.

Two numbers are compared, the p99 of real-time and the throughput of the background. Who is better
in one of them pays with the other, or does not; where it does not, the figure's spec has to say
why, in a `[[rival]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from steady_lab.errors import LabError
from steady_lab.figures.metric import METRICS
from steady_lab.figures.rows import Measurements
from steady_lab.figures.workload import Workload
from steady_lab.toml_table import Point, Table

if TYPE_CHECKING:
    from steady_lab.figures.spec import Figure

DEFAULT = "k2-440us"  # the variant with k2's own defaults, in every workload that has it
P99, BACKGROUND = METRICS["rt.p99_ms"], METRICS["bg.mib_s"]
# Histograms have 64 buckets for a factor of two: values closer than this are the same.
SAME = 0.02


class Better(Enum):
    """The gain of a rival, and its price."""

    LATENCY = "shorter p99, less background"
    BACKGROUND = "more background, longer p99"
    FREE = "better, and in nothing worse"


@dataclass(frozen=True)
class Reason:
    """Why some variants are better at some points, without being worse in anything."""

    variants: tuple[str, ...]
    points: tuple[Point, ...]
    text: str


@dataclass(frozen=True)
class Place:
    """A rival that is better at a point; throughputs are in MiB/s, None where none is reported."""

    point: Point
    variant: str
    better: Better
    p99_ms: float
    background_mib_s: float | None
    reason: str  # only for FREE


def take_reason(table: Table, workload: Workload) -> Reason:
    """Read one [[rival]]; raises SpecError on a bad one."""
    known = tuple(variant.name for variant in workload.variants)
    variants = tuple(str(name) for name in _some(table, "variants", known))
    points = _some(table, "points", workload.points) if table.has("points") else workload.points
    reason = Reason(variants, points, table.text("reason"))
    table.close()
    return reason


def _some(table: Table, key: str, known: tuple[Point, ...]) -> tuple[Point, ...]:
    allowed = "a non-empty array out of " + ", ".join(map(str, known))
    chosen = table.items(key, allowed)
    if any(each not in known for each in chosen):
        raise table.fail(key, allowed)
    return tuple(chosen)


def cell(measured: Measurements, variant: str, point: Point) -> tuple[float, float | None]:
    """Return p99 and background throughput of a cell, None if not reported."""
    return measured.value(variant, point, P99), measured.found(variant, point, BACKGROUND)


def better_places(figure: Figure, measured: Measurements) -> list[Place]:
    """Return where which rival is better; raises LabError for a reason that lacks or is idle."""
    places = [
        place
        for point in figure.shown_points
        for variant in figure.workload.variants
        if variant.name != DEFAULT
        for place in _place(figure.rivals, measured, point, variant.name)
    ]
    _refuse_unexplained(figure, places)
    return places


def _place(
    reasons: Sequence[Reason], measured: Measurements, point: Point, variant: str
) -> list[Place]:
    ours, theirs = cell(measured, DEFAULT, point), cell(measured, variant, point)
    shorter = _more(ours[0], theirs[0])
    more = _more(theirs[1] or 0.0, ours[1] or 0.0)
    if shorter <= 0 and more <= 0:
        return []
    free = shorter >= 0 and more >= 0
    better = Better.FREE if free else Better.LATENCY if shorter > 0 else Better.BACKGROUND
    found = [each.text for each in reasons if variant in each.variants and point in each.points]
    return [Place(point, variant, better, *theirs, found[0] if free and found else "")]


def _more(one: float, other: float) -> int:
    """Return 1 if the one is larger by more than SAME, -1 if it is smaller, else 0."""
    if abs(one - other) <= SAME * max(one, other):
        return 0
    return 1 if one > other else -1


def _refuse_unexplained(figure: Figure, places: Sequence[Place]) -> None:
    free = [place for place in places if place.better is Better.FREE]
    missing = [f"{place.variant} at {place.point}" for place in free if not place.reason]
    if missing:
        raise LabError(f"{figure.name}: a [[rival]] must say why it is better: {missing}")
    used = {place.reason for place in free}
    idle = [reason.text for reason in figure.rivals if reason.text not in used]
    if idle:
        raise LabError(f"{figure.name}: [[rival]] is not better: {idle}")
