# SPDX-License-Identifier: MIT OR Apache-2.0
"""Strict reading of the output of `steady tune` (docs/spec/tune-1.schema.json).

Each error names the file, the key, the value and the valid values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.pages.given_files import read_given
from steady_lab.pages.tune_record import (
    WHOLE_MAX,
    Knobs,
    RtLatency,
    Setup,
    read_rt_latency,
    read_setup,
)
from steady_lab.toml_table import Table

OPTION = "--tune"
SCHEMA = "steadyio.tune/1"
QUANTITIES = ("tail", "throughput")
NUMBER_MAX = 1e18


@dataclass(frozen=True)
class Goal:
    """The quantity to optimise, and the limit: one of `tail_ns_max` and `mib_s_min`."""

    best: str
    limit_percent_of_none: float | None
    tail_ns_max: float | None
    mib_s_min: float | None
    quantile_percent: float
    near_percent: float


@dataclass(frozen=True)
class TunePoint:
    """One measurement; without a scheduler it has no knobs."""

    knobs: Knobs
    tail_ns: int
    tail_ns_min: int | None
    tail_ns_max: int | None
    samples: int
    mib_s: float
    errors: int
    is_met: bool
    is_certain: bool | None
    is_frontier: bool
    rt: RtLatency

    @property
    def has_interval(self) -> bool:
        """Tell whether there were enough samples for both ends."""
        return self.tail_ns_min is not None and self.tail_ns_max is not None


@dataclass(frozen=True)
class Contradiction:
    """Two measurements of which the lower one has more of a quantity."""

    quantity: str
    lower: Knobs
    upper: Knobs


@dataclass(frozen=True)
class Pick:
    """The chosen knobs, and the shell commands that set them."""

    knobs: Knobs
    commands: list[str]
    is_applied: bool


@dataclass(frozen=True)
class TuneReport:
    """A whole report."""

    goal: Goal
    knobs: dict[str, list[int]]
    settings: dict[str, int | str]
    interval_percent: float
    samples_needed: int
    candidates: int
    none: TunePoint | None
    points: list[TunePoint]
    contradictions: list[Contradiction]
    pick: Pick | None
    nearest: Knobs | None
    setup: Setup

    @property
    def measurements(self) -> list[TunePoint]:
        """Return all that was measured, without a scheduler first."""
        return [*([self.none] if self.none else []), *self.points]

    @property
    def picked_or_nearest(self) -> TunePoint | None:
        """Return the picked measurement; without a pick, the one that comes nearest."""
        return self.point_at(self.pick.knobs if self.pick else self.nearest)

    def point_at(self, knobs: Knobs | None) -> TunePoint | None:
        """Return the measurement of these knobs."""
        return next((point for point in self.points if point.knobs == knobs), None)


def read_tune_report(path: Path) -> tuple[TuneReport, bytes]:
    """Return a report and its bytes; raises LabError naming the file, and the key if it is one."""
    document, content = read_given(OPTION, path, SCHEMA, "steady tune --out FILE …")
    table = Table(document, f"{OPTION} {path}")
    report = _report(table)
    table.close()
    _check(report, table)
    return report, content


def _report(table: Table) -> TuneReport:
    table.take("schema", SCHEMA)
    record = table.table("record")
    confidence = table.table("confidence")
    report = TuneReport(
        goal=_goal(table.table("goal")),
        knobs=_choices(table.table("knobs"), table.take("knobs", "a table [knobs]")),
        settings=_settings(table, "with"),
        interval_percent=confidence.number("percent", 0, 100),
        samples_needed=confidence.integer("samples_needed", 1, WHOLE_MAX),
        candidates=table.integer("candidates", 2, WHOLE_MAX),
        none=table.or_null("none", lambda key: _point(table.table(key), record)),
        points=[_point(each, record) for each in _all(table, "points", 1)],
        contradictions=[_contradiction(each) for each in _all(table, "contradictions", 0)],
        pick=table.or_null("pick", lambda key: _pick(table.table(key))),
        nearest=table.or_null("nearest", lambda key: _knobs(table, key)),
        setup=read_setup(record),
    )
    confidence.flag("is_enough")
    confidence.close()
    return report


def _check(report: TuneReport, table: Table) -> None:
    """Reject contradictions."""
    if report.candidates != math.prod(map(len, report.knobs.values())):
        raise table.fail("candidates", "the number of combinations of [knobs]")
    for point, each in zip(report.points, table.tables("points"), strict=True):
        is_each = point.knobs.keys() == report.knobs.keys()
        if not is_each or any(
            value not in report.knobs[name] for name, value in point.knobs.items()
        ):
            raise each.fail("knobs", "a value of each of [knobs]")
    if report.none and report.none.knobs:
        raise table.table("none").fail("knobs", "empty")
    for key, knobs in (
        ("pick", report.pick.knobs if report.pick else None),
        ("nearest", report.nearest),
    ):
        if knobs is not None and not report.point_at(knobs):
            raise table.fail(key, "one of [[points]]")


def _goal(table: Table) -> Goal:
    def number(key: str) -> float:
        return table.number(key, 0, NUMBER_MAX)

    goal = Goal(
        best=table.choice("best", QUANTITIES),
        limit_percent_of_none=table.or_null("limit_percent_of_none", number),
        tail_ns_max=table.or_null("tail_ns_max", number),
        mib_s_min=table.or_null("mib_s_min", number),
        quantile_percent=table.number("quantile_percent", 50, 99.999),
        near_percent=table.number("near_percent", 0, 100),
    )
    table.close()
    limit = {"throughput": "tail_ns_max", "tail": "mib_s_min"}[goal.best]
    for key in ("tail_ns_max", "mib_s_min"):
        if (getattr(goal, key) is None) == (key == limit):
            raise table.fail(key, f"{'a number' if key == limit else 'null'}: best = {goal.best}")
    return goal


def _choices(table: Table, raw: dict[str, Any]) -> dict[str, list[int]]:
    found = {}
    for name in raw:
        values = table.items(name, "an array of whole numbers, rising")
        if not all(_is_whole(value) for value in values) or values != sorted(set(values)):
            raise table.fail(name, "an array of whole numbers, rising")
        found[name] = values
    return found


def _point(table: Table, record: Table) -> TunePoint:
    def whole(key: str) -> int:
        return table.integer(key, 0, WHOLE_MAX)

    knobs = _knobs(table, "knobs")
    point = TunePoint(
        knobs=knobs,
        tail_ns=whole("tail_ns"),
        tail_ns_min=table.or_null("tail_ns_min", whole),
        tail_ns_max=table.or_null("tail_ns_max", whole),
        samples=table.integer("samples", 1, WHOLE_MAX),
        mib_s=table.number("mib_s", 0, NUMBER_MAX),
        errors=whole("errors"),
        is_met=table.flag("is_met"),
        is_certain=table.or_null("is_certain", table.flag),
        is_frontier=table.flag("is_frontier"),
        rt=read_rt_latency(record, knobs, table),
    )
    table.close()
    return point


def _contradiction(table: Table) -> Contradiction:
    found = Contradiction(
        table.choice("quantity", QUANTITIES), _knobs(table, "lower"), _knobs(table, "upper")
    )
    table.close()
    return found


def _pick(table: Table) -> Pick:
    commands = table.items("commands", "an array of shell commands")
    if not all(isinstance(command, str) for command in commands):
        raise table.fail("commands", "an array of shell commands")
    pick = Pick(_knobs(table, "knobs"), commands, table.flag("is_applied"))
    _settings(table, "settings")
    table.close()
    return pick


def _knobs(table: Table, key: str) -> Knobs:
    value = table.take(key, "knobs with their values")
    if not isinstance(value, dict) or not all(_is_whole(each) for each in value.values()):
        raise table.fail(key, "knobs with whole numbers")
    return value


def _settings(table: Table, key: str) -> dict[str, int | str]:
    value = table.take(key, "settings with their values")
    if not isinstance(value, dict) or not all(
        isinstance(each, str) or _is_whole(each) for each in value.values()
    ):
        raise table.fail(key, "settings with whole numbers or strings")
    return value


def _all(table: Table, key: str, count_min: int) -> Sequence[Table]:
    """Return a required array of tables."""
    table.take(key, "an array")
    found = table.tables(key)
    if len(found) < count_min:
        raise table.fail(key, f"an array of {count_min} or more")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
