# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the paper on K2 and SSDs prints next to what the model of its drive gives, for docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steady_lab.devices.spec import load_device
from steady_lab.devices.ssd_fit import (
    ALLOWED,
    HALF_FULL,
    Case,
    Point,
    Published,
    Said,
    cases,
    nearest,
    simulate,
)
from steady_lab.devices.ssd_load import SPEC
from steady_lab.pages.device_page import COMMAND
from steady_lab.pages.marked_part import with_part

NAMES = {"mb_s": "MB/s", "p999_us": "p99.9 us"}
# Why the model is beyond what is allowed (ALLOWED), or a statement does not hold.
REASONS = {
    ("full", "random write", 0, "p999_us"): "97 writes share what garbage collection leaves, in "
    "the order in which they came; the paper does not say how its drive serves its queues",
    ("full", "sequential write", 0, "mb_s"): "writes in order empty lines that were overwritten "
    "at random, so it rises with time; how large the paper's files are is not known",
}
Found = Mapping[Case, Mapping[str, float]]


def points_lines(published: Published, found: Found) -> Iterator[str]:
    """Yield the table of printed numbers."""
    yield "| figure | drive | operation | scheduler | quantity | paper | model | error | |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- |"
    for point in published.points:
        case = (point.state, point.operation, point.bound)
        if case not in found:
            continue
        for quantity, printed in _printed(point):
            value = found[case][quantity]
            error = value / nearest(printed, value) - 1
            cells = (
                point.where,
                point.state,
                point.operation,
                _scheduler(point.bound),
                NAMES[quantity],
                _range(printed),
                f"{value:.0f}",
                f"{error:+.0%}",
                _verdict(abs(error) <= ALLOWED[quantity], (*case, quantity)),
            )
            yield f"| {' | '.join(cells)} |"


def said_lines(published: Published, found: Found) -> Iterator[str]:
    """Yield the table of statements."""
    yield "| operation | scheduler | the paper says | model | holds |"
    yield "| --- | --- | --- | ---: | --- |"
    for said in published.said:
        case = (HALF_FULL, said.operation, said.bound)
        if case not in found:
            continue
        value = found[case][said.quantity]
        yield (
            f"| {said.operation} | {_scheduler(said.bound)} | {_statement(said)} | {value:.0f} "
            f"| {_verdict(said.holds(value), (*case, said.quantity))} |"
        )


def tables(published: Published, drives: Mapping[str, Mapping[str, int]]) -> str:
    """Return both tables of the drives, "half full" and "full", or one of them. Raises LabError."""
    found = dict(simulate(drives, [case for case in cases(published) if case[0] in drives]))
    return "\n".join([*points_lines(published, found), "", *said_lines(published, found), ""])


def _printed(point: Point) -> Iterator[tuple[str, tuple[float, float]]]:
    if point.mb_s:
        yield "mb_s", point.mb_s
    if point.p999_us:
        yield "p999_us", (point.p999_us, point.p999_us)


def _range(printed: tuple[float, float]) -> str:
    low, high = printed
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _scheduler(bound: int) -> str:
    return f"K2-{bound}" if bound else "none"


def _statement(said: Said) -> str:
    return f"{NAMES[said.quantity]} {said.relation} {said.value:g}"


def _verdict(holds: bool, of: tuple[str, str, int, str]) -> str:
    return "yes" if holds else f"**no**: {REASONS.get(of, 'not known why')}"


def with_ssd(page: str, published: Published) -> str:
    """Return docs/devices.md with its tables of SSDs rewritten. Raises LabError."""
    committed = {state: load_device(path).values for state, path in SPEC.items()}
    return with_part(page, "ssd-paper", COMMAND, tables(published, committed))
