# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady bound` promises is kept on the emulated cards, and not by promising too little."""

from pathlib import Path

from check import median_ratio, run_random

RATIO_MAX = 1.5
# One with a command queue and pauses, one with a cache.
CARDS = {3: range(4), 11: range(4)}


def test_nothing_takes_longer_than_its_bound_which_is_near_what_was_seen(work: Path) -> None:
    seen = []
    for card, sets in CARDS.items():
        folder = work / f"card-{card}"
        folder.mkdir()
        seen += run_random(folder, card, sets)
    assert sum(observed.bound is not None for observed in seen) >= 10
    exceeding = [str(observed) for observed in seen if observed.exceeds()]
    assert not exceeding
    assert median_ratio(seen) <= RATIO_MAX
    # A bound that leaves something out is found.
    assert any(observed.exceeds(without="blocking_ns") for observed in seen)
    assert any(observed.exceeds(without="higher_levels_ns") for observed in seen)
