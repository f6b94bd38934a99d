# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random cards, probed, and random task sets on them: no bound of a profile is exceeded.
Run it with `pytest tests/bound/soak_probe.py`.

STEADY_BOUND_SETS [100], five to a card, from the card STEADY_BOUND_SEED [1] on. Cards with an odd
number are probed through a file on ext4, the others raw.
"""

import os
from pathlib import Path

from check import Observed, observed, run
from soak_bound import summary
from steady_lab.paths import GUEST_PROJECT
from steady_lab.search.sets import random_card, random_set, toml
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

SETS_PER_CARD = 5
CAPACITY_MIB = 1024
STEADY = f"{GUEST_PROJECT}/build/bin/steady"


def probe(folder: Path, card: Path, through_a_file: bool) -> Path:
    """Return the profile of the card."""
    (folder / "card.img").touch()
    raw = [STEADY, "probe", "/dev/mmcblk0", "--quick", "--write=/dev/mmcblk0", "--out=profile.toml"]
    script = ["sh", f"{GUEST_PROJECT}/tests/bound/probe_file.sh"]
    environment = {"STEADY": STEADY, "FILESYSTEM": "ext4"}
    command = script if through_a_file else raw
    request = BootRequest(command, folder, card, environment=environment, card_image="card.img")
    result = uml().boot(request)
    assert result.exit_status == 0, result.output[-3000:]
    (folder / "card.img").unlink()
    return folder / "profile.toml"


def on_card(folder: Path, seed: int) -> list[Observed]:
    folder.mkdir()
    card = random_card(seed)
    path = folder / "card.toml"
    path.write_text(toml(card), encoding="utf-8")
    smaller = card | {"card": card["card"] | {"capacity_mib": CAPACITY_MIB}}
    probed = folder / "probed.toml"
    probed.write_text(toml(smaller), encoding="utf-8")
    profile = probe(folder, probed, through_a_file=seed % 2 == 1)
    sets = [random_set(card, number) for number in range(SETS_PER_CARD)]
    run(folder, path, sets)
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
