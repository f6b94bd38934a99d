# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady probe --write FILE` finds the times of the card, not those of the file system on it."""

from pathlib import Path
from typing import Any

import pytest
from check import observed, run
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.search.sets import task_set
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml
from steady_lab.toml_table import load_toml
from test_probe import expected

CARDS = PROJECT / "experiments" / "devices"
# Of the times and of what pauses, relative; what the host adds to each command is the card's.
TIME_ERROR, PAUSE_ERROR = 0.05, 0.1
HOST_NS = 4_000
# A card with a cache and FUA, for which the kernel sends fewer flushes than for a device; pauses
# longer than all else; and slow states with short pauses.
RUNS = [
    ("test-cache-fua", "ext4", "6.1"),
    ("test-cache-fua", "ext4", "6.12"),
    ("test-cache-fua", "f2fs", "6.1"),
    ("test-cache-fua", "f2fs", "6.12"),
    ("test-slow-sd", "ext4", "6.12"),
    ("test-slow-sd", "f2fs", "6.1"),
    ("foresee-ncemad9d-usb", "ext4", "6.1"),
    ("foresee-ncemad9d-cqe", "f2fs", "6.12"),
]


def probed(card: str, filesystem: str, release: str, work: Path) -> dict[str, Any]:
    (work / "card.img").touch()
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady", "FILESYSTEM": filesystem}
    command = ["sh", f"{GUEST_PROJECT}/tests/bound/probe_file.sh"]
    request = BootRequest(
        command, work, CARDS / f"{card}.toml", environment=environment, card_image="card.img"
    )
    result = uml(release).boot(request)
    print(result.output)
    assert result.exit_status == 0, result.output
    return load_toml(work / "profile.toml")


def differing(profile: dict[str, Any], wanted: dict[str, float]) -> list[str]:
    lines = []
    for key, value in wanted.items():
        table, name = key.split(".")
        # Discards need a device.
        if table == "erase":
            continue
        found = profile.get(table, {}).get(name, 0)
        error = PAUSE_ERROR if name.startswith("pause_") else TIME_ERROR
        slack = HOST_NS if name.endswith("_ns") and not name.startswith("per_kib") else 0
        if abs(found - value) > error * value + slack:
            lines.append(f"{key} = {found}, and the card was given {value}")
    return lines


@pytest.mark.parametrize(("card", "filesystem", "release"), RUNS)
def test_a_probe_through_a_file_finds_the_times_of_the_card(
    card: str, filesystem: str, release: str, work: Path
) -> None:
    profile = probed(card, filesystem, release, work)
    assert not differing(profile, expected(CARDS / f"{card}.toml"))
    for seen in profile["seen"].values():
        # Nothing that the file system did is taken for a stall of the card.
        assert seen["beyond_count"] == 0 and seen["beyond_ns"] < HOST_NS, seen


def test_a_bound_of_a_profile_from_a_file_holds_for_large_writes(work: Path) -> None:
    probed("test-cache-fua", "ext4", "6.1", work)
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
