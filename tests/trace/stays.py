# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests as `steady trace` and blktrace both can tell them, and how far the two agree.

A request's stays with the driver (D to C) are compared: one, or one per piece of a split. Two
stays are the same if they begin at the same sector with the same length and are the same in number
among all such: both tools see them in the same order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from steady_lab.errors import LabError


@dataclass(frozen=True)
class Stay:
    """One time with the driver; times in ns."""

    sector: int
    sectors: int
    issued_ns: int
    ended_ns: int

    @property
    def d2c_ns(self) -> int:
        return self.ended_ns - self.issued_ns


@dataclass(frozen=True)
class Found:
    """A request: when its first bio was queued, if that was seen, and its stays."""

    queued_ns: int | None
    stays: tuple[Stay, ...]

    @property
    def q2c_ns(self) -> int | None:
        return None if self.queued_ns is None else self.stays[-1].ended_ns - self.queued_ns


@dataclass
class Agreement:
    """Of all stays and requests that both found: by how many ns their times differ.

    `apart` are pairs of which one had ended when the other began: not the same stay.
    """

    d2c_off_ns: list[int] = field(default_factory=list)
    q2c_off_ns: list[int] = field(default_factory=list)
    apart: list[tuple[Stay, Stay]] = field(default_factory=list)
    only_here: list[Stay] = field(default_factory=list)
    only_there: list[Stay] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{name}: {len(off)} in both, off by p50 {nearest_rank(off, 50)} ns, "
            f"p99 {nearest_rank(off, 99)} ns, max {max(off, default=0)} ns"
            for name, off in (("D2C", self.d2c_off_ns), ("Q2C", self.q2c_off_ns))
        ]
        lines += [f"apart: {one} {other}" for one, other in self.apart[:10]]
        lines += [f"only steady trace: {stay}" for stay in self.only_here[:10]]
        lines += [f"only blktrace: {stay}" for stay in self.only_there[:10]]
        return "\n".join(lines)


def nearest_rank(values: Iterable[int], percent: float) -> int:
    """Return the percentile of the nearest rank; 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0


def compare(here: list[Found], there: list[Found]) -> Agreement:
    """Pair what steady trace and blktrace found; raises LabError if there is nothing to pair."""
    agreement = Agreement()
    first, second = _by_place(here), _by_place(there)
    for place in sorted(first.keys() | second.keys()):
        ours, theirs = first.get(place, []), second.get(place, [])
        for (found, one), (other_found, other) in zip(ours, theirs, strict=False):
            agreement.d2c_off_ns.append(abs(one.d2c_ns - other.d2c_ns))
            if one.ended_ns < other.issued_ns or other.ended_ns < one.issued_ns:
                agreement.apart.append((one, other))
            is_last = one is found.stays[-1] and other is other_found.stays[-1]
            q2c_ns, other_q2c_ns = found.q2c_ns, other_found.q2c_ns
            if is_last and q2c_ns is not None and other_q2c_ns is not None:
                agreement.q2c_off_ns.append(abs(q2c_ns - other_q2c_ns))
        agreement.only_here += [one for _, one in ours[len(theirs) :]]
        agreement.only_there += [one for _, one in theirs[len(ours) :]]
    if not agreement.d2c_off_ns:
        raise LabError(f"nothing in common: {len(here)} and {len(there)} requests")
    return agreement


def during(found: list[Found], window: list[Found]) -> list[Found]:
    """Leave out what ended before the first request of another list, or began after its last."""
    stays = [stay for request in window for stay in request.stays]
    first_ns = min((stay.issued_ns for stay in stays), default=0)
    last_ns = max((stay.ended_ns for stay in stays), default=0)
    return [
        request
        for request in found
        if first_ns <= request.stays[-1].ended_ns and request.stays[0].issued_ns <= last_ns
    ]


def _by_place(found: list[Found]) -> dict[tuple[int, int], list[tuple[Found, Stay]]]:
    places: dict[tuple[int, int], list[tuple[Found, Stay]]] = defaultdict(list)
    stays = [(request, stay) for request in found for stay in request.stays]
    for request, stay in sorted(stays, key=lambda pair: pair[1].issued_ns):
        places[stay.sector, stay.sectors].append((request, stay))
    return places
