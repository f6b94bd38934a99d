# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady probe` finds the times that an emulated card was given, and they are good for what they
are for: a card in the lab, and a bound."""

from pathlib import Path
from typing import Any

import pytest
from check import jobs, observed, run
from steady_lab.devices.spec import load_device
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.search.sets import one_task, task_set
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml
from steady_lab.toml_table import load_toml

CARDS = PROJECT / "experiments" / "devices"
# The guest's memory holds all written data.
CAPACITY_MIB = 320
# Of the times, relative; what the host adds to each command is measured as the card's.
TIME_ERROR = 0.05
HOST_NS = 4_000
P99_ERROR = 0.1
LOADS = [
    one_task("read", 64, "read", 16),
    one_task("write", 16, "read", 64),
    one_task("read", 4, "write", 4),
]


def small(card: str, work: Path) -> Path:
    """The card's spec with less capacity."""
    text = (CARDS / f"{card}.toml").read_text(encoding="utf-8")
    capacity = load_toml(CARDS / f"{card}.toml")["card"]["capacity_mib"]
    path = work / "card.toml"
    smaller = text.replace(f"capacity_mib = {capacity}", f"capacity_mib = {CAPACITY_MIB}")
    path.write_text(smaller, encoding="utf-8")
    return path


def probed(card: Path, work: Path, *arguments: str, length: str = "--quick") -> dict[str, Any]:
    command = [f"{GUEST_PROJECT}/build/bin/steady", "probe", "/dev/mmcblk0", length]
    request = BootRequest([*command, "--out=profile.toml", *arguments], work, card)
    result = uml().boot(request)
    assert result.exit_status == 0, result.output
    return load_toml(work / "profile.toml")


def expected(card: Path) -> dict[str, float]:
    """What the spec says, as a probe sees it: without a queue, the bus is in the time per KiB."""
    values = load_device(card).values
    bus_ns = 0 if values["queue_depth"] else values["bus_per_kib_ns"]
    found: dict[str, float] = {}
    for op in ("read", "write"):
        found[f"{op}.base_ns"] = values[f"{op}_base_ns"]
        found[f"{op}.per_kib_ns"] = values[f"{op}_per_kib_ns"] + bus_ns
        found[f"{op}.jump_ns"] = values[f"{op}_jump_ns"]
        found[f"{op}.slow_ns"] = values[f"{op}_slow_ns"]
    found["write.base_ns"] += values["status_ns"]
    found["write.pause_ns"] = values["write_pause_ns"]
    found["write.pause_kib"] = values["write_pause_kib"]
    found["erase.base_ns"] = values["erase_base_ns"]
    found["erase.per_kib_ns"] = values["erase_per_kib_ns"]
    if values["cache_kib"]:
        found["cache.kib"] = values["cache_kib"]
        found["flush.base_ns"] = values["flush_base_ns"]
    if values["queue_depth"]:
        for key in ("units", "bus_per_kib_ns"):
            found[f"card.{key}"] = values[key]
        found["queue.depth"] = values["queue_depth"]
    if values["slow_length_us"]:
        found["slow.period_us"] = values["slow_period_us"]
        found["slow.length_us"] = values["slow_length_us"]
    return found


def differing(profile: dict[str, Any], wanted: dict[str, float]) -> list[str]:
    lines = []
    for key, value in wanted.items():
        table, name = key.split(".")
        found = profile.get(table, {}).get(name, 0)
        slack = HOST_NS if name.endswith("_ns") and not name.startswith("per_kib") else 0
        if abs(found - value) > TIME_ERROR * value + slack:
            lines.append(f"{key} = {found}, and the card was given {value}")
    return lines


@pytest.mark.parametrize(
    "card",
    ["foresee-ncemad9d-usb", "foresee-ncemad9d-cqe", "foresee-ncemad9d-cache", "s4-emmc-8gb"],
)
def test_a_probe_finds_what_the_card_was_given(card: str, work: Path) -> None:
    path = small(card, work)
    profile = probed(path, work, "--write=/dev/mmcblk0")
    assert not differing(profile, expected(path))
    assert profile["seen"]["read"]["samples"] > 1000


def test_the_profile_is_as_good_as_the_card_for_a_figure_and_for_a_bound(work: Path) -> None:
    card = small("foresee-ncemad9d-usb", work)
    probed(card, work, "--write=/dev/mmcblk0")
    profile = work / "profile.toml"
    folders = [work / "on-card", work / "on-profile"]
    for folder, device in zip(folders, (card, profile), strict=True):
        folder.mkdir()
        run(folder, device, LOADS)
    for load in LOADS:
        want, got = (jobs(folder, load)["task"]["latency_ns"]["p99"] for folder in folders)
        assert abs(got - want) <= P99_ERROR * want, f"{load.name}: {got} ns, on the card {want}"
        (seen,) = observed(folders[0], profile, load)
        assert seen.bound
        assert not seen.exceeds(), str(seen)


def test_pauses_of_seconds_are_found_and_their_bound_holds(work: Path) -> None:
    card = small("test-seconds-sd", work)
    profile = probed(card, work, "--write=/dev/mmcblk0", length="--duration=60s")
    assert not differing(profile, expected(card))
    task = {"name": "w", "op": "write", "kib": 64, "level": 0, "ios": 1}
    tasks = [task | {"period_us": 500_000, "jitter_us": 1_000}]
    knobs = {"inflight_max": 1, "split_kib": 16, "background_wait_ms_max": 0}
    load = task_set("w", 1, tasks, {"op": "read", "kib": 64}, knobs, 140)
    folder = work / "on-card"
    folder.mkdir()
    run(folder, card, [load])
    (seen,) = observed(folder, work / "profile.toml", load)
    assert seen.bound
    assert expected(card)["write.pause_ns"] < seen.max_ns, str(seen)
    assert not seen.exceeds(), str(seen)


def test_a_probe_of_reads_only_writes_nothing(work: Path) -> None:
    card = small("foresee-ncemad9d-usb", work)
    script = (
        "md5sum </dev/mmcblk0 >before; "
        f"{GUEST_PROJECT}/build/bin/steady probe /dev/mmcblk0 --quick --out=profile.toml; "
        "md5sum </dev/mmcblk0 | cmp - before && cat /sys/block/mmcblk0/queue/scheduler"
    )
    before = "echo k2 >/sys/block/mmcblk0/queue/scheduler; head -c 1M /dev/urandom >/dev/mmcblk0; "
    result = uml().boot(BootRequest(["sh", "-c", before + script], work, card))
    assert result.exit_status == 0, result.output
    assert "[k2]" in result.output
    assert "write" not in load_toml(work / "profile.toml")


def test_a_probe_refuses_what_is_used_or_holds_something_and_leaves_nothing(work: Path) -> None:
    card = small("foresee-ncemad9d-usb", work)
    # Its own file is as large as the guest's memory: the card is in a file.
    (work / "card.img").touch()
    script = f"{GUEST_PROJECT}/tests/bound/probe_refuses.sh"
    result = uml().boot(BootRequest(["sh", script], work, card, card_image="card.img"))
    assert result.exit_status == 0, result.output


def test_a_card_that_goes_away_ends_the_probe_with_an_error_and_without_a_profile(
    work: Path,
) -> None:
    script = f"{GUEST_PROJECT}/tests/bound/probe_dies.sh"
    result = uml().boot(BootRequest(["sh", script], work, small("test-plain", work)))
    assert result.exit_status == 0, result.output
