# SPDX-License-Identifier: MIT OR Apache-2.0
"""The one rule for percentiles, the same as that of `steady bench`."""

from __future__ import annotations

from collections.abc import Sequence

MYRIAD = 10_000


def nearest_rank(histogram_ns: Sequence[Sequence[int]], per_myriad: int) -> int | None:
    """Return the smallest bin value with at least that share of all at or below it.

    `histogram_ns` is [(bin value, count)], values rising; None when it is empty.
    """
    total = sum(count for _, count in histogram_ns)
    seen = 0
    for value, count in histogram_ns:
        seen += count
        if seen * MYRIAD >= total * per_myriad:
            return value
    return None
