# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fit the model of an SSD to the published numbers of the paper on K2 and SSDs.

A request's wait follows from the drive's state, so there is no closed form: each point is
simulated (lab/simulate) and a coordinate search changes one number at a time. It begins at
constants and always runs the same loads with the same seeds, so its result does not depend on the
specs.

Only what reads depend on is fitted. In writes, p99.9 follows from a few erases in ten seconds: it
scatters by more than a step of the search changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from steady_lab.devices.ssd_load import OPERATIONS, SPEC, run_load
from steady_lab.paths import PROJECT
from steady_lab.toml_table import Table, load_toml

PUBLISHED = PROJECT / "experiments/devices/published/k2-ssd.toml"
SCHEMA = "steadyio.published-bounds/1"
HALF_FULL = "half full"
QUANTITIES = ("mb_s", "p999_us")
# A point is met if its throughput, or its p99.9, is this close to the published value.
ALLOWED = {"mb_s": 0.10, "p999_us": 0.50}
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
}
COMPUTED = ("read_csb_ns", "read_msb_ns", "read_command_ns", "read_front_ns")
# Throughput that alone determines a number: Figure 4a, none, and 4b, K2-1.
SEQUENTIAL_MB_S, RANDOM_ONE_MB_S = 720, 44
SLOT_NS = 4096 * 1000  # over MB/s: the time of 4 KiB
# By how much reads of the second and third bit are longer than of the first. Assumed.
CSB_LATER_NS, MSB_LATER_NS = 5000, 13_000
BOUND_MAX = 1024
VALUE_MAX = 1_000_000
# The paper has the mean of five experiments; the p99.9 of one simulated run scatters by 30 %.
SEEDS = (1, 2, 3)
JOBS = 2
# Real-time requests of a run of the search, of which there are many.
SEARCH_SAMPLES = "samples=2000"
# The search takes a change only if it lowers the error by this much; else it follows scatter.
WORTH = 0.02


@dataclass(frozen=True)
class Point:
    """What the paper prints of one load: `mb_s` is a range, and may be missing as p999_us may."""

    where: str
    state: str
    operation: str
    bound: int
    mb_s: tuple[float, float] | None
    p999_us: float | None


@dataclass(frozen=True)
class Said:
    """A statement about a half full drive."""

    operation: str
    bound: int
    quantity: str
    relation: str
    value: float

    def holds(self, found: float) -> bool:
        """Tell whether a simulated value agrees."""
        return RELATIONS[self.relation](float(found), self.value)


@dataclass(frozen=True)
class Published:
    """All of the file."""

    points: tuple[Point, ...]
    said: tuple[Said, ...]


@dataclass(frozen=True)
class Free:
    """A number that is searched for: where from, how far, by which steps, and by how little."""

    param: str
    start: int
    low: int
    high: int
    step: int
    grain: int


FREE = (
    Free("read_lsb_ns", 50_000, 30_000, 75_000, 8000, 2000),
    Free("ahead_pages", 1, 1, 6, 2, 1),
    Free("ahead_kept", 8, 4, 32, 4, 4),
)
FITTED = (*COMPUTED, *(one.param for one in FREE))


def load_published(path: Path = PUBLISHED) -> Published:
    """Read the published numbers of the paper. Raises SpecError."""
    table = Table(load_toml(path), str(path))
    table.choice("schema", (SCHEMA,))
    published = Published(
        tuple(_point(item) for item in table.tables("point")),
        tuple(_said(item) for item in table.tables("said")),
    )
    table.close()
    return published


def _point(table: Table) -> Point:
    point = Point(
        where=table.text("where"),
        state=table.choice("drive", tuple(SPEC)),
        operation=table.choice("operation", tuple(OPERATIONS)),
        bound=table.integer("bound", 0, BOUND_MAX),
        mb_s=_range(table) if table.has("mb_s") else None,
        p999_us=table.number("p999_us", 1, VALUE_MAX) if table.has("p999_us") else None,
    )
    table.close()
    return point


def _range(table: Table) -> tuple[float, float]:
    allowed = "two numbers, the smaller first"
    value = table.take("mb_s", allowed)
    if not isinstance(value, list) or len(value) != 2 or not 0 < value[0] <= value[1]:
        raise table.fail("mb_s", allowed)
    return float(value[0]), float(value[1])


def _said(table: Table) -> Said:
    said = Said(
        operation=table.choice("operation", tuple(OPERATIONS)),
        bound=table.integer("bound", 0, BOUND_MAX),
        quantity=table.choice("quantity", QUANTITIES),
        relation=table.choice("relation", tuple(RELATIONS)),
        value=table.number("value", 1, VALUE_MAX),
    )
    table.close()
    return said


Case = tuple[str, str, int]
"""State of the drive, operation, bound."""


def cases(published: Published) -> list[Case]:
    """Return what must be simulated, each once."""
    found = [(p.state, p.operation, p.bound) for p in published.points]
    found += [(HALF_FULL, s.operation, s.bound) for s in published.said]
    return list(dict.fromkeys(found))


def simulate(
    drives: Mapping[str, Mapping[str, int]], wanted: list[Case], *more: str
) -> Iterator[tuple[Case, dict[str, float]]]:
    """Yield throughput and p99.9 of each case, means over SEEDS. Raises LabError."""

    def one(case: Case, seed: int) -> dict[str, float]:
        state, operation, bound = case
        words = (*OPERATIONS[operation], f"bound={bound}", f"load_seed={seed}", *more)
        return run_load(drives[state], *words)

    with ThreadPoolExecutor(JOBS) as pool:
        for case in wanted:
            runs = list(pool.map(partial(one, case), SEEDS))
            yield case, {name: mean(run[name] for run in runs) for name in QUANTITIES}


def nearest(printed: tuple[float, float], found: float) -> float:
    """Return the number of a printed range that a value is to be compared with."""
    return min(max(found, printed[0]), printed[1])


def errors(published: Published, case: Case, found: Mapping[str, float]) -> list[float]:
    """Return how far off a case's printed numbers and statements are; 1: as far as is allowed."""
    far = []
    for point in published.points:
        if (point.state, point.operation, point.bound) != case:
            continue
        if point.mb_s:
            far.append(_far(found["mb_s"], nearest(point.mb_s, found["mb_s"]), "mb_s"))
        if point.p999_us:
            far.append(_far(found["p999_us"], point.p999_us, "p999_us"))
    for said in published.said:
        value = found[said.quantity]
        if (HALF_FULL, said.operation, said.bound) == case and not said.holds(value):
            far.append(1 + _far(value, said.value, said.quantity))
    return far


def _far(found: float, wanted: float, quantity: str) -> float:
    return abs(math.log(found / wanted)) / math.log(1 + ALLOWED[quantity])


def total(
    published: Published,
    drives: Mapping[str, Mapping[str, int]],
    wanted: list[Case],
    enough: float = math.inf,
) -> float:
    """Return the error that the search minimises: the sum of the squares of all errors.

    It stops when that is more than `enough`. Raises LabError.
    """
    summed = 0.0
    for case, found in simulate(drives, wanted, SEARCH_SAMPLES):
        summed += sum(error * error for error in errors(published, case, found))
        if summed > enough:
            break
    return summed


def with_values(drive: Mapping[str, int], values: tuple[int, ...]) -> dict[str, int]:
    """Return a drive's numbers with values of FREE, and those that a throughput determines."""
    made = {**drive, **{one.param: value for one, value in zip(FREE, values, strict=True)}}
    made["read_csb_ns"] = made["read_lsb_ns"] + CSB_LATER_NS
    made["read_msb_ns"] = made["read_lsb_ns"] + MSB_LATER_NS
    serial_ns = SLOT_NS / SEQUENTIAL_MB_S
    page_ns = made["read_lsb_ns"] + (CSB_LATER_NS + MSB_LATER_NS) / 3
    made["read_command_ns"] = _rounded(serial_ns - 4 * made["link_per_kib_ns"])
    made["read_front_ns"] = _rounded(
        SLOT_NS / RANDOM_ONE_MB_S - serial_ns - made["transfer_ns"] - page_ns
    )
    return made


def _rounded(ns: float) -> int:
    return round(ns / 10) * 10


def search(
    free: tuple[Free, ...],
    error: Callable[[tuple[int, ...], float], float],
    tell: Callable[[tuple[int, ...], float], None],
) -> tuple[int, ...]:
    """Return the values at which no step of a grain makes the error smaller by WORTH.

    One number at a time, up or down by its step; when none of them helps, steps are halved.
    `error` gets what it must be below to be of use, too. `tell` gets each better set of values.
    """
    best = tuple(one.start for one in free)
    known = {best: error(best, math.inf)}
    steps = [one.step for one in free]
    tell(best, known[best])
    while True:
        before = best
        for index, one in enumerate(free):
            for step in (steps[index], -steps[index]):
                value = min(max(best[index] + step, one.low), one.high)
                tried = (*best[:index], value, *best[index + 1 :])
                wanted = known[best] * (1 - WORTH)
                if tried not in known:
                    known[tried] = error(tried, wanted)
                if known[tried] < wanted:
                    best = tried
                    tell(best, known[best])
                    break
        if best != before:
            continue
        smaller = [_halved(step, one.grain) for step, one in zip(steps, free, strict=True)]
        if smaller == steps:
            return best
        steps = smaller


def _halved(step: int, grain: int) -> int:
    return max(step // 2 // grain * grain, grain)


def fit(
    published: Published,
    drive: Mapping[str, int],
    tell: Callable[[dict[str, int], float], None],
) -> dict[str, int]:
    """Return the fitted numbers by parameter. All others come from `drive`.

    `tell` gets each better set of them, and its error. Raises LabError.
    """
    wanted = [case for case in cases(published) if case[1].endswith("read")]

    def numbers(values: tuple[int, ...]) -> dict[str, int]:
        made = with_values(drive, values)
        return {name: made[name] for name in FITTED}

    def error(values: tuple[int, ...], enough: float) -> float:
        drives = {HALF_FULL: with_values(drive, values)}
        return total(published, drives, wanted, enough)

    best = search(FREE, error, lambda values, found: tell(numbers(values), found))
    return numbers(best)


def mismatches(fitted: Mapping[str, int], drive: Mapping[str, int]) -> list[str]:
    """Return where a spec's values differ from those of a fit."""
    return [
        f"{name} = {drive[name]}, fitted {value}"
        for name, value in fitted.items()
        if drive[name] != value
    ]
