# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report of `steady tune` (docs/spec/tune-1.schema.json), as far as a page shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.pages.given_files import read_given

OPTION = "--tune"
SCHEMA = "steadyio.tune/1"
NS_PER_US = 1000

Knobs = dict[str, int]


@dataclass(frozen=True)
class TunePoint:
    """One measurement; without a scheduler it has no knobs.

    `latency_ns` has the real-time p50, p99, p999 and max. `marks` are "pick", "nearest" and
    "frontier".
    """

    knobs: Knobs
    tail_ns: int
    tail_ns_min: int | None
    tail_ns_max: int | None
    samples: int
    mib_s: float
    errors: int
    is_met: bool
    is_certain: bool | None
    latency_ns: dict[str, int]
    marks: tuple[str, ...]

    @property
    def has_interval(self) -> bool:
        """Tell whether there were enough samples for both ends."""
        return self.tail_ns_min is not None and self.tail_ns_max is not None

    @property
    def is_ringed(self) -> bool:
        """Tell whether it is the pick; without a pick, the one that comes nearest."""
        return bool({"pick", "nearest"} & set(self.marks))

    @property
    def verdict(self) -> str:
        """Return whether it keeps the limit, and whether that is certain."""
        verdict = "kept" if self.is_met else "not kept"
        return f"{verdict}, uncertain" if self.is_certain is False else verdict


@dataclass(frozen=True)
class TuneReport:
    """A whole report: `chosen` are the knobs with more than one value, `raw` is the document."""

    raw: dict[str, Any]
    chosen: tuple[str, ...]
    quantile_percent: float
    interval_percent: float
    tail_ns_limit: float | None
    mib_s_limit: float | None
    percent_of_none: float | None
    none: TunePoint | None
    points: tuple[TunePoint, ...]

    @property
    def measurements(self) -> tuple[TunePoint, ...]:
        """Return all that was measured, without a scheduler first."""
        return (self.none, *self.points) if self.none else self.points

    @property
    def tail(self) -> str:
        """Return the name of the tail's quantile, such as p99.9."""
        return f"p{self.quantile_percent:g}"

    def knobs_text(self, knobs: Knobs) -> str:
        """Return the values of the knobs that there was a choice of."""
        return " ".join(f"{name}={knobs[name]}" for name in self.chosen)


def read_tune_report(path: Path) -> tuple[TuneReport, bytes]:
    """Return a report and its bytes; raises LabError naming the file."""
    document, content = read_given(OPTION, path, SCHEMA, "steady tune --out FILE …")
    try:
        return _report(document), content
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise LabError(f"{OPTION} {path}: not as `steady tune` writes it: {error!r}") from error


def _report(document: dict[str, Any]) -> TuneReport:
    goal, percent = document["goal"], document["confidence"]["percent"]
    report = TuneReport(
        raw=document,
        chosen=tuple(name for name, values in document["knobs"].items() if len(values) > 1),
        quantile_percent=float(goal["quantile_percent"]),
        interval_percent=float(percent),
        tail_ns_limit=_number(goal["tail_ns_max"]),
        mib_s_limit=_number(goal["mib_s_min"]),
        percent_of_none=_number(goal["limit_percent_of_none"]),
        none=_point(document, document["none"]) if document["none"] else None,
        points=tuple(_point(document, point) for point in document["points"]),
    )
    if (report.tail_ns_limit is None) == (report.mib_s_limit is None) or not report.points:
        raise ValueError("it has no limit or no points")
    return report


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _point(document: dict[str, Any], raw: dict[str, Any]) -> TunePoint:
    knobs = {name: int(value) for name, value in raw["knobs"].items()}
    pick = document["pick"]
    marks = {
        "pick": pick is not None and pick["knobs"] == knobs,
        "nearest": document["nearest"] == knobs,
        "frontier": bool(raw["is_frontier"]),
    }
    return TunePoint(
        knobs=knobs,
        tail_ns=int(raw["tail_ns"]),
        tail_ns_min=_whole(raw["tail_ns_min"]),
        tail_ns_max=_whole(raw["tail_ns_max"]),
        samples=int(raw["samples"]),
        mib_s=float(raw["mib_s"]),
        errors=int(raw["errors"]),
        is_met=bool(raw["is_met"]),
        is_certain=raw["is_certain"],
        latency_ns=_latency_ns(document["record"], knobs),
        marks=tuple(mark for mark, applies in marks.items() if applies),
    )


def _latency_ns(record: dict[str, Any], knobs: Knobs) -> dict[str, int]:
    """Return the real-time latencies of the bench record's result with these knobs."""
    wanted = {"scheduler": "k2" if knobs else "none"}
    wanted |= {f"iosched/{name}": str(value) for name, value in knobs.items()}

    def is_it(settings: dict[str, Any]) -> bool:
        return all(str(settings.get(key, {}).get("wanted")) == wanted[key] for key in wanted)

    result = [each for each in record["results"] if is_it(each["knobs"])][0]
    latency = result["classes"]["rt"]["latency_ns"]
    return {name: int(latency[name]) for name in ("p50", "p99", "p999", "max")}


def us(ns: float) -> str:
    """Return a time in µs, as `steady tune` prints it."""
    return f"{ns / NS_PER_US:.1f}"


def samples_needed(percent: float, interval_percent: float) -> int:
    """Return the least samples of which the largest is likely enough above the quantile."""
    outside = (1 - interval_percent / 100) / 2
    return math.ceil(math.log(outside) / math.log(percent / 100))
