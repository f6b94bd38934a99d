# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random cards, probed, and random task sets on them: no bound of a profile is exceeded. And each
card of experiments/devices, probed in each way: its times are those of the spec.
Run it with `pytest tests/bound/soak_probe.py`.

STEADY_BOUND_SETS [100], five to a card, from the card STEADY_BOUND_SEED [1] on. Successive cards
are probed raw, through a file on ext4 and on f2fs; each second three on 6.12, the others on 6.1.
"""

import os
from pathlib import Path

import pytest
from check import Observed, observed, run
from matrix import CELLS, Cell, outcome
from probing import CAPACITY_MIB, probed
from soak_bound import summary
from steady_lab.search.sets import random_card, random_set, toml

SETS_PER_CARD = 5


def on_card(folder: Path, seed: int) -> list[Observed]:
    folder.mkdir()
    card = random_card(seed)
    path = folder / "card.toml"
    path.write_text(toml(card), encoding="utf-8")
    place = tuple(CAPACITY_MIB)[seed % 3]
    release = ("6.1", "6.12")[seed // 3 % 2]
    smaller = card | {"card": card["card"] | {"capacity_mib": CAPACITY_MIB[place]}}
    small = folder / "probed.toml"
    small.write_text(toml(smaller), encoding="utf-8")
    probed(small, folder, place, release)
    profile = folder / "profile.toml"
    (folder / "card.img").unlink(missing_ok=True)
    sets = [random_set(card, number) for number in range(SETS_PER_CARD)]
    run(folder, path, sets, release)
    return [seen for made in sets for seen in observed(folder, profile, made)]


def test_no_random_set_exceeds_the_bound_of_a_profile(work: Path) -> None:
    first = int(os.environ.get("STEADY_BOUND_SEED", "1"))
    cards = int(os.environ.get("STEADY_BOUND_SETS", "100")) // SETS_PER_CARD
    seen = [
        found for seed in range(first, first + cards) for found in on_card(work / f"{seed}", seed)
    ]
    print(f"{cards * SETS_PER_CARD} sets: {summary(seen)}")
    exceeding = [str(found) for found in seen if found.exceeds()]
    assert not exceeding, "\n".join(exceeding)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_profile_has_the_times_of_the_card(cell: Cell, work: Path) -> None:
    found = outcome(cell, work)
    assert found.is_right(), found.wrong
