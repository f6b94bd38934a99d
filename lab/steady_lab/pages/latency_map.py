# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cells of a map: time or offset across in equal steps, latency upwards in equal factors.

There are at most COLUMNS_MAX by ROWS_MAX cells, however long a trace is.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from steady_lab.pages.plot import TICK_STEPS, TICKS_PER_AXIS_MAX

COLUMNS_MAX, ROWS_MAX = 120, 40
ROWS_PER_DECADE = (20, 10, 5, 2, 1)
SECTOR_BYTES = 512
LEVELS = 6  # colours


@dataclass(frozen=True)
class Columns:
    """Column n holds values from `start + n * step` up to the next column's first."""

    start: int
    step: int
    count: int
    tick_step: int

    def cell(self, value: int) -> int:
        """Return the column of a value."""
        return (value - self.start) // self.step

    def share(self, value: float) -> float:
        """Return how far to the right a value is: 0 to 1."""
        return (value - self.start) / (self.step * self.count)

    def ticks(self) -> list[int]:
        """Return the values to label."""
        first = -(-self.start // self.tick_step) * self.tick_step
        return list(range(first, self.start + self.step * self.count + 1, self.tick_step))


@dataclass(frozen=True)
class Rows:
    """Row n holds times from 10 ** ((first + n) / per_decade) ns up to the next row's first."""

    per_decade: int
    first: int
    count: int

    def cell(self, ns: int) -> int:
        """Return the row of a time, the lowest first; 0 ns counts as 1."""
        return _row(ns, self.per_decade) - self.first

    def share(self, ns: float) -> float:
        """Return how far up a time is: 0 to 1."""
        return (math.log10(max(ns, 1)) * self.per_decade - self.first) / self.count

    def edge_ns(self, n: int) -> float:
        """Return the shortest time of a row."""
        return float(10 ** ((self.first + n) / self.per_decade))

    def ticks(self) -> list[float]:
        """Return the times to label, in ns."""
        low, high = self.edge_ns(0), self.edge_ns(self.count)
        decades = range(self.first // self.per_decade, math.floor(math.log10(high)) + 1)
        made: list[float] = []
        for steps in TICK_STEPS:
            made = [step * 10.0**decade for decade in decades for step in steps]
            made = [ns for ns in made if low <= ns <= high]
            if len(made) <= TICKS_PER_AXIS_MAX:
                break
        return made


def time_columns(last_ns: int) -> Columns:
    """Return columns from 0 to this time, with a round step."""
    step = _round_step(last_ns, COLUMNS_MAX)
    return Columns(0, step, last_ns // step + 1, _round_step(last_ns, TICKS_PER_AXIS_MAX))


def offset_columns(first: int, last: int) -> Columns:
    """Return columns with all offsets in bytes between two; the step is a power of two."""
    step = _binary_step(first, last, COLUMNS_MAX)
    columns = last // step - first // step + 1
    tick_step = _binary_step(first, last, TICKS_PER_AXIS_MAX)
    return Columns(first // step * step, step, columns, tick_step)


def latency_rows(times_ns: Iterable[int]) -> Rows:
    """Return rows with all these times, in the finest steps that fit; a decade or more."""
    ordered = sorted(times_ns)
    for per_decade in ROWS_PER_DECADE:
        low, high = _row(ordered[0], per_decade), _row(ordered[-1], per_decade)
        rows = max(high - low + 1, per_decade)
        if rows <= ROWS_MAX:
            break
    return Rows(per_decade, max(0, low - (rows - (high - low + 1)) // 2), rows)


def counted(
    points: Iterable[tuple[int, int]], columns: Columns, rows: Rows
) -> Counter[tuple[int, int]]:
    """Return how many points, of a column's value and a time, each cell has."""
    return Counter((columns.cell(value), rows.cell(ns)) for value, ns in points)


def level_starts(most: int) -> list[int]:
    """Return the smallest count of each colour, logarithmically up to `most`."""
    return sorted({round(most ** (n / LEVELS)) for n in range(LEVELS)})


def level_of(number: int, starts: Sequence[int]) -> int:
    """Return the colour of a count; few colours lie as far apart as many."""
    own = bisect_right(starts, number) - 1
    return own * (LEVELS - 1) // max(1, len(starts) - 1)


def _row(ns: int, per_decade: int) -> int:
    return math.floor(math.log10(max(ns, 1)) * per_decade)


def _round_step(last: int, steps_max: int) -> int:
    steps = (digit * int(10**power) for power in count() for digit in (1, 2, 5))
    return next(step for step in steps if last // step < steps_max)


def _binary_step(first: int, last: int, steps_max: int) -> int:
    steps = (SECTOR_BYTES << power for power in count())
    return next(step for step in steps if last // step - first // step < steps_max)
