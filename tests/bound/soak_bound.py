# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many more task sets, ten to a card, and as many with declared tasks; called by scripts/soak.

STEADY_BOUND_SETS [1000] of each, from the card STEADY_BOUND_SEED [1] on.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from check import Observed, declared_counts, median_ratio, run_random
from steady_lab.search.sets import TaskSet, declared_set, durable_set, random_set
from test_bound import RATIO_MAX

SETS_PER_CARD = 10


def split_set(card: dict[str, Any], seed: int, *, in_phase: bool = False) -> TaskSet:
    """A random set; on cards with a cache each third has durable writes."""
    if seed % 3 == 2 and "cache" in card:
        return durable_set(card, seed)
    return random_set(card, seed, in_phase=in_phase)


MAKES = {"split": split_set, "declared": declared_set}


def on_card(work: Path, kind: str, card: int) -> list[Observed]:
    folder = work / f"card-{card}"
    folder.mkdir()
    # All jobs begin at once on each second card.
    make = partial(MAKES[kind], in_phase=card % 2 == 0)
    seen = run_random(folder, card, range(SETS_PER_CARD), make)
    for path in folder.glob("*.declared"):
        counts = declared_counts(folder, path.stem)
        assert [count for count in counts if count["over_k2"]] == [], path
    return seen


def summary(seen: list[Observed]) -> str:
    """The figures of docs/reference/bound.md."""
    shares = [found.max_ns / found.bound["bound_ns"] for found in seen if found.bound]
    p90 = sorted(1 / share for share in shares)[len(shares) * 9 // 10]
    return (
        f"{len(seen)} tasks, {len(shares)} with a bound; the longest seen was at most "
        f"{max(shares):.3f} of it, and it was {median_ratio(seen):.2f} x (median) and {p90:.2f} x "
        "(p90) the longest seen"
    )


@pytest.mark.parametrize("kind", MAKES)
def test_no_random_set_exceeds_its_bound(kind: str, work: Path) -> None:
    first = int(os.environ.get("STEADY_BOUND_SEED", "1"))
    cards = int(os.environ.get("STEADY_BOUND_SETS", "1000")) // SETS_PER_CARD
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(partial(on_card, work, kind), range(first, first + cards))
        seen = [observed for result in results for observed in result]
    print(f"{cards * SETS_PER_CARD} sets, {kind}: {summary(seen)}")
    exceeding = [str(observed) for observed in seen if observed.exceeds()]
    assert not exceeding
    assert median_ratio(seen) <= RATIO_MAX
