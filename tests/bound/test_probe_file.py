# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady probe --write FILE` finds the times of the card, not those of the file system on it."""

from pathlib import Path

import pytest
from check import observed, run
from probing import CARDS, HOST_NS, expected, probed, wrong
from steady_lab.search.sets import task_set

# A card with a cache and FUA, for which the kernel sends fewer flushes than for a device; pauses
# longer than all else; and slow states with short pauses.
RUNS = [
    ("test-cache-fua", "ext4", "6.12"),
    ("test-slow-sd", "f2fs", "6.1"),
]
MORE_RUNS = [
    ("foresee-ncemad9d-cqe", "f2fs", "6.12"),
    ("test-cache-fua", "ext4", "6.1"),
    ("test-cache-fua", "f2fs", "6.1"),
    ("test-cache-fua", "f2fs", "6.12"),
    ("test-slow-sd", "ext4", "6.12"),
    ("foresee-ncemad9d-usb", "ext4", "6.1"),
]
by_night = pytest.mark.nightly("a file system that hides a card's times on one release only")


@pytest.mark.parametrize(
    ("card", "filesystem", "release"),
    [*RUNS, *(pytest.param(*run, marks=by_night) for run in MORE_RUNS)],
)
def test_a_probe_through_a_file_finds_the_times_of_the_card(
    card: str, filesystem: str, release: str, work: Path
) -> None:
    path = CARDS / f"{card}.toml"
    profile = probed(path, work, filesystem, release)
    assert not wrong(profile, expected(path, filesystem))
    for seen in profile["seen"].values():
        # Nothing that the file system did is taken for a stall of the card.
        assert seen["beyond_count"] == 0 and seen["beyond_ns"] < HOST_NS, seen


def test_a_bound_of_a_profile_from_a_file_holds_for_large_writes(work: Path) -> None:
    probed(CARDS / "test-cache-fua.toml", work, "ext4", "6.1")
    folder = work / "on-card"
    folder.mkdir()
    task = {"name": "w", "op": "write", "kib": 512, "level": 0, "ios": 1}
    tasks = [task | {"period_us": 100_000, "jitter_us": 1_000}]
    knobs = {"inflight_max": 1, "split_kib": 16, "background_wait_ms_max": 0}
    load = task_set("w", 1, tasks, {"op": "read", "kib": 64}, knobs, 20)
    run(folder, CARDS / "test-cache-fua.toml", [load])
    (seen,) = observed(folder, work / "profile.toml", load)
    assert seen.bound
    assert not seen.exceeds(), str(seen)
