# SPDX-License-Identifier: MIT OR Apache-2.0
"""The numbers of the paper on K2 and SSDs next to those of the model of its drive."""

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
from steady_lab.figures.table import TextTable

PART = "ssd"
NAMES = {"mb_s": "MB/s", "p999_us": "p99.9 us"}
# Why the model exceeds the tolerance (ALLOWED), or a statement does not hold.
REASONS = {
    ("full", "random write", 0, "p999_us"): "97 writes share what garbage collection leaves, in "
    "the order in which they came; the paper does not say how its drive serves its queues",
    ("full", "sequential write", 0, "mb_s"): "writes in order empty lines that were overwritten "
    "at random, so it rises with time; how large the paper's files are is not known",
}
Found = Mapping[Case, Mapping[str, float]]


def points_table(published: Published, found: Found) -> TextTable:
    """Return the table of printed numbers."""
    body = []
    for point in published.points:
        case = (point.state, point.operation, point.bound)
        if case not in found:
            continue
        for quantity, printed in _printed(point):
            value = found[case][quantity]
            error = value / nearest(printed, value) - 1
            what = [point.where, point.state, point.operation, _scheduler(point.bound)]
            numbers = [NAMES[quantity], _range(printed), f"{value:.0f}", f"{error:+.0%}"]
            near = abs(error) <= ALLOWED[quantity]
            body.append([*what, *numbers, _verdict(near, (*case, quantity))])
    header = ["figure", "drive", "operation", "scheduler", "quantity", "paper", "model", "error"]
    return TextTable("Printed numbers", [*header, "near"], body)


def said_table(published: Published, found: Found) -> TextTable:
    """Return the table of statements."""
    body = []
    for said in published.said:
        case = (HALF_FULL, said.operation, said.bound)
        if case not in found:
            continue
        value = found[case][said.quantity]
        verdict = _verdict(said.holds(value), (*case, said.quantity))
        what = [said.operation, _scheduler(said.bound), _statement(said)]
        body.append([*what, f"{value:.0f}", verdict])
    header = ["operation", "scheduler", "the paper says", "model", "holds"]
    return TextTable("Statements", header, body)


def ssd_tables(published: Published, drives: Mapping[str, Mapping[str, int]]) -> list[TextTable]:
    """Return both tables of the drives, "half full" and "full", or one of them. Raises LabError."""
    found = dict(simulate(drives, [case for case in cases(published) if case[0] in drives]))
    return [points_table(published, found), said_table(published, found)]


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


def committed_tables(published: Published) -> list[TextTable]:
    """Return the tables of the committed specs. Raises LabError."""
    return ssd_tables(published, {state: load_device(path).values for state, path in SPEC.items()})
