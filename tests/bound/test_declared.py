# SPDX-License-Identifier: MIT OR Apache-2.0
"""Declared tasks keep their bounds on the kernel, no wait is k2's own fault, and the background has
most of what they leave."""

from pathlib import Path
from typing import Any

import pytest
from check import declared_counts, median_ratio, results_of, run_random
from steady_lab.figures.spec import load_figure
from steady_lab.paths import PROJECT
from steady_lab.search.sets import declared_set

CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
# One with a command queue and pauses, one with a cache, one with neither.
CARDS = {3: range(3), 11: range(3), 5: range(2)}
# Of few tasks: a declared jitter that differs by 2 us changes it from 1.49 to 1.63.
RATIO_MAX = 1.65


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


@pytest.mark.parametrize(("jitter_us", "least"), [(200, 0.94), (500, 0.88), (1_000, 0.8)])
def test_declared_tasks_leave_the_background_its_share(
    jitter_us: int, least: float, work: Path
) -> None:
    found = results_of(work, CARD, share(jitter_us))
    whole_mib_s = found["whole"]["bg"]["mib_s"]
    left = found["declared"]["bg"]["mib_s"] / whole_mib_s
    longest_ns = found["declared"]["rt"]["latency_ns"]["max"]
    print(f"+-{jitter_us} us: {100 * left:.1f} % of {whole_mib_s:.1f} MiB/s, {longest_ns} ns")
    assert left >= least
    # test_figures.py compares with `steady bound`.
    assert longest_ns <= load_figure("every-10-ms").headline_bound_ms["k2-declared"] * 1_000_000


def share(jitter_us: int) -> dict[str, Any]:
    """A read every 10 ms next to a background that is whole, or is cut for the declared reader."""
    rt = {"name": "rt", "class": "rt", "op": "randread", "bs_kib": 64, "ioprio": "rt/0"}
    rt |= {"arrivals": "periodic", "gap_us": 10_000, "jitter_us": jitter_us, "data": "zero"}
    bg = {"name": "bg", "class": "bg", "op": "randread", "bs_kib": 512, "ioprio": "idle"}
    knobs = {"scheduler": "k2", "iosched/inflight_max": 1, "iosched/rt_block_us": 0}
    limits = {"iosched/device_limits": "read 393700 11100 write 684000 15200"}
    return {
        "schema": "steadyio.workload/1",
        "name": "share",
        "seed": 1,
        "length": {"ios": 2000},
        "job": [rt, bg | {"data": "zero"}],
        "variant": [
            {"name": "whole", "knobs": knobs},
            {"name": "declared", "knobs": knobs | limits, "declare_block_us": 440},
        ],
    }
