# SPDX-License-Identifier: MIT OR Apache-2.0
"""Declared tasks keep their bounds on the kernel, and no wait is k2's own fault."""

from pathlib import Path

from check import declared_counts, median_ratio, run_random
from steady_lab.search.sets import declared_set

# One with a command queue and pauses, one with a cache, one with neither.
CARDS = {3: range(3), 11: range(3), 5: range(2)}
RATIO_MAX = 1.6


def test_declared_tasks_keep_their_bounds(work: Path) -> None:
    seen, counts = [], []
    for card, sets in CARDS.items():
        folder = work / f"card-{card}"
        folder.mkdir()
        seen += run_random(folder, card, sets, declared_set)
        for path in sorted(folder.glob("*.declared")):
            counts += declared_counts(folder, path.stem)
    assert sum(observed.bound is not None for observed in seen) >= 10
    exceeding = [str(observed) for observed in seen if observed.exceeds()]
    assert not exceeding
    assert len(counts) == len(seen)
    assert all(count["jobs"] > 50 for count in counts)
    assert [count for count in counts if count["over_k2"] or count["foreign"]] == []
    print(f"median {median_ratio(seen):.2f}")
    assert median_ratio(seen) <= RATIO_MAX
    # A bound that leaves blocking out is found.
    assert any(observed.exceeds(without="blocking_ns") for observed in seen)
