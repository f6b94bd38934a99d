# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady probe` finds the times that an emulated card was given, and they are good for what they
are for: a card in the lab, and a bound."""

from pathlib import Path

import pytest
from check import jobs, observed, run
from probing import CARDS, HOST_NS, expected, probed, small, wrong
from steady_lab.devices.spec import load_device
from steady_lab.paths import GUEST_PROJECT
from steady_lab.search.sets import one_task, task_set
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml
from steady_lab.toml_table import load_toml

P99_ERROR = 0.1
# The least that such a probe takes.
BLANK_MIB = 128
LOADS = [
    one_task("read", 64, "read", 16),
    one_task("write", 16, "read", 64),
    one_task("read", 4, "write", 4),
]


@pytest.mark.parametrize(
    "card",
    ["foresee-ncemad9d-usb", "foresee-ncemad9d-cqe", "foresee-ncemad9d-cache", "s4-emmc-8gb"],
)
def test_a_probe_finds_what_the_card_was_given(card: str, work: Path) -> None:
    path = small(card, work)
    profile = probed(path, work)
    assert not wrong(profile, expected(path))
    assert profile["seen"]["read"]["samples"] > 1000
    for seen in profile["seen"].values():
        # Nothing that the probe left behind is taken for a stall of the card.
        assert seen["beyond_count"] == 0 and seen["beyond_ns"] < HOST_NS, seen


@pytest.mark.nightly("wrong times of a card whose units work on one command at once")
def test_bounds_hold_on_a_card_whose_units_work_on_one_command_at_once(work: Path) -> None:
    card = small("emmc-hs400-sige5", work)
    profile = probed(card, work)
    assert not wrong(profile, expected(card))
    for seen in profile["seen"].values():
        assert seen["exact_kib"] == 16 and seen["faster_percent"] > 40, seen
    folder = work / "on-card"
    folder.mkdir()
    loads = [one_task("read", 64, "read", 16), one_task("read", 256, "read", 512)]
    run(folder, card, loads)
    for load in loads:
        (found,) = observed(folder, work / "profile.toml", load)
        assert found.bound
        assert not found.exceeds(), str(found)


def test_the_profile_is_as_good_as_the_card_for_a_figure_and_for_a_bound(work: Path) -> None:
    card = small("foresee-ncemad9d-usb", work)
    probed(card, work)
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
    profile = probed(card, work, length="--duration=60s")
    assert not wrong(profile, expected(card))
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


def test_a_blank_card_is_read_back_and_measured_full_and_while_data_are_deleted(work: Path) -> None:
    text = (CARDS / "test-plain.toml").read_text(encoding="utf-8")
    card = work / "small.toml"
    smaller = text.replace("capacity_mib = 256", f"capacity_mib = {BLANK_MIB}")
    card.write_text(smaller, encoding="utf-8")
    script = ["sh", f"{GUEST_PROJECT}/tests/bound/probe_blank.sh"]
    result = uml().boot(BootRequest(script, work, card, modules=["null_blk nr_devices=0"]))
    assert result.exit_status == 0, result.output
    profile = load_toml(work / "card.toml")
    assert not wrong(profile, expected(card))
    assert profile["full"] == {"percent": 80}
    assert profile["verified"] == {"written_kib": BLANK_MIB << 10, "right_kib": BLANK_MIB << 10}
    # A write waits for a discard.
    given = load_device(card).values
    write_ns = given["write_base_ns"] + 64 * given["write_per_kib_ns"] + given["status_ns"]
    assert profile["deleting"]["longest_ns"] > write_ns + given["erase_base_ns"] / 2
    assert load_device(work / "card.toml").name == profile["name"]
    lost = load_toml(work / "null.toml")
    assert lost["full"] == {"percent": 100} and "deleting" not in lost
    assert lost["verified"] == {
        "written_kib": BLANK_MIB << 10,
        "right_kib": 0,
        "wrong_at_kib": 0,
    }
    assert "loses data, and holds no rate" in result.output


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
