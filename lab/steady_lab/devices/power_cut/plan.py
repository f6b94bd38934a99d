# SPDX-License-Identifier: MIT OR Apache-2.0
"""Choose the cuts of a log: every n-th write, and flushes; during and after; all fates in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from steady_lab.devices.power_cut.card import FATES, Cut
from steady_lab.devices.power_cut.write_log import Kind, Record, WriteLog

# The share of cuts that lie in and after flushes, if there are enough flushes.
FLUSH_SHARE = 0.25


def plan_cuts(log: WriteLog, count: int, seed: int, from_ns: int, to_ns: int) -> list[Cut]:
    """Return `count` cuts at operations that begin in from_ns..to_ns, by time; none without any.

    A cut during an operation is as late in it as possible, a cut after it as late before the next:
    then the most is reported durable. With more cuts than operations, each has several, with
    different fates.
    """
    next_ns = _next_arrivals(log.records)
    chosen = [record for record in log.records if from_ns <= record.arrived_ns <= to_ns]
    flushes = [record for record in chosen if record.kind is Kind.FLUSH]
    changes = [record for record in chosen if record.kind in (Kind.WRITE, Kind.ZERO)]
    of_flushes = evenly(flushes, int(count * FLUSH_SHARE))
    picked = of_flushes + evenly(changes, count - len(of_flushes))
    # Moments change fastest, so that neighbouring picks meet every pair of moment and fate.
    ways = [(fate, moment) for fate, moment in product(FATES, ("during", "after"))]
    cuts = []
    for number, record in enumerate(picked):
        fate, moment = ways[number % len(ways)]
        late_ns = record.finish_ns if moment == "during" else next_ns[record.sequence]
        cuts.append(Cut(late_ns - 1, fate, seed + number))
    return sorted(cuts, key=lambda cut: cut.time_ns)


def evenly(records: Sequence[Record], count: int) -> list[Record]:
    """Return `count` of them, evenly spread; each several times if there are fewer."""
    if not records:
        return []
    return [records[number * len(records) // count] for number in range(count)]


def _next_arrivals(records: Sequence[Record]) -> dict[int, int]:
    """Return when the next operation arrives, but not before this one is done."""
    arrivals = [record.arrived_ns for record in records[1:]]
    arrivals.append(records[-1].finish_ns + 1 if records else 0)
    return {
        record.sequence: max(arrival, record.finish_ns + 1)
        for record, arrival in zip(records, arrivals, strict=True)
    }
