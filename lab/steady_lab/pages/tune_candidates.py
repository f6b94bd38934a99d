# SPDX-License-Identifier: MIT OR Apache-2.0
"""All candidates of a tune report: measured, or excluded by one that was.

A report lists what was measured. What excludes the others follows from it: tail and throughput are
taken to rise with each knob, unless the report has a contradiction (docs/reference/steady-tune.md,
"How it searches").
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from steady_lab.pages.tune_record import Knobs
from steady_lab.pages.tune_report import TunePoint, TuneReport


@dataclass(frozen=True)
class Candidate:
    """A combination of knobs; `why` is the reason if it was excluded and not measured."""

    knobs: Knobs
    point: TunePoint | None
    why: str


def all_candidates(report: TuneReport) -> list[Candidate]:
    """Return each combination, knobs rising."""
    candidates = []
    for values in product(*report.knobs.values()):
        knobs = dict(zip(report.knobs, values, strict=True))
        point = report.point_at(knobs)
        candidates.append(Candidate(knobs, point, "" if point else _why(report, knobs)))
    return candidates


def knobs_text(report: TuneReport, knobs: Knobs) -> str:
    """Return the knobs that there was a choice of."""
    chosen = chosen_names(report)
    return " ".join(f"{name}={value}" for name, value in knobs.items() if name in chosen)


def chosen_names(report: TuneReport) -> list[str]:
    """Return the knobs with more than one value."""
    return [name for name, values in report.knobs.items() if len(values) > 1]


def _why(report: TuneReport, knobs: Knobs) -> str:
    """Return the text of the nearest measurement that excludes a candidate, or ""."""
    found = [
        (_steps(report, knobs, point.knobs), f"{side} {knobs_text(report, point.knobs)}, {words}")
        for point in report.points
        for side, words in [_excludes(report, point)]
        if side and _is_on(side, knobs, point.knobs)
    ]
    return min(found)[1] if found else ""


def _excludes(report: TuneReport, point: TunePoint) -> tuple[str, str]:
    """Return the side of a measurement that it excludes, and the reason; no side if none."""
    falling = {found.quantity for found in report.contradictions}
    is_tail_limited = report.goal.best == "throughput"
    if point.is_met:
        side, words = "below" if is_tail_limited else "above", "which keeps the limit"
        return ("" if report.goal.best in falling else side), words
    if is_tail_limited:
        return ("" if "tail" in falling else "above"), "whose tail is too long"
    return ("" if "throughput" in falling else "below"), "whose throughput is too low"


def _is_on(side: str, knobs: Knobs, of: Knobs) -> bool:
    lower, upper = (knobs, of) if side == "below" else (of, knobs)
    return all(lower[name] <= upper[name] for name in lower)


def _steps(report: TuneReport, one: Knobs, other: Knobs) -> int:
    """Return how many values of the knobs lie between two candidates."""
    places = (
        (values.index(one[name]), values.index(other[name]))
        for name, values in report.knobs.items()
    )
    return sum(abs(a - b) for a, b in places)
