# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tasks that write with O_DSYNC on cards with a volatile cache keep their bounds, and so do the
tasks below them: the write bypasses the cache, and a flush of it follows."""

from pathlib import Path

import pytest
from check import median_ratio, observed, run
from releases import RELEASES
from steady_lab.search.sets import durable_set, random_card, toml

# With a cache of 512 KiB; its sets take few seconds.
CARDS = {13: range(4)}
# More than elsewhere: a bound counts a full cache for each flush, and flushes keep it from filling.
RATIO_MAX = 2


@pytest.mark.parametrize("release", RELEASES)
def test_durable_writes_keep_their_bounds(release: str, work: Path) -> None:
    seen = []
    for seed, sets in CARDS.items():
        folder = work / f"card-{seed}"
        folder.mkdir()
        card = random_card(seed)
        (folder / "card.toml").write_text(toml(card), encoding="utf-8")
        made = [durable_set(card, number) for number in sets]
        run(folder, folder / "card.toml", made, release)
        seen += [found for one in made for found in observed(folder, folder / "card.toml", one)]
    durable = [found for found in seen if found.task.get("durable")]
    assert sum(found.bound is not None for found in durable) >= 4
    exceeding = [str(found) for found in seen if found.exceeds()]
    assert not exceeding
    assert median_ratio(seen) <= RATIO_MAX
    # A bound without the flush of the cache is found.
    assert any(found.exceeds(without="stalls_ns") for found in durable)
