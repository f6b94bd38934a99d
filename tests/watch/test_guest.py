# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady watch` in a guest: on a card under k2, and on an NVMe drive."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from releases import LAB_RELEASE, RELEASES, guest_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest

DEVICES = PROJECT / "experiments" / "devices"


def run(script: str, device: str, work: Path, release: str = LAB_RELEASE) -> None:
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    command = ["sh", f"{GUEST_PROJECT}/tests/watch/{script}"]
    request = BootRequest(command, work, DEVICES / device, environment=environment)
    result = guest_kernel(release).boot(request)
    assert result.exit_status == 0, result.output[-3000:]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("release", RELEASES)
def test_each_request_on_a_card_is_in_one_interval(release: str, work: Path) -> None:
    run("card.sh", "test-plain.toml", work, release)
    count, late = Counter[str](), Counter[str]()
    intervals = lines(work / "watch.json")
    for interval in intervals:
        (device,) = interval["devices"]
        for one in device["interval"]["classes"] or []:
            count[one["class"]] += one["count"]
            late[one["class"]] += one["late"]
            if one["class"] == "rt0":
                # 4 KiB take 116 us in the card.
                assert 116_000 < one["p50_ns"] < 200_000
    assert (count["rt0"], count["rt4"], count["rt1"]) == (7, 103, 0)
    assert +late == {"rt4": 3}
    assert intervals[-1]["devices"][0]["wear"]["used_ratio"] == 0.1
    said = (work / "said").read_text("utf-8")
    assert "mmcblk0: is under none now, no longer k2" in said
    assert "mmcblk0: is under k2 now, no longer none" in said


@pytest.mark.parametrize("release", ["6.1", "6.12"])
def test_durable_writes_and_their_flushes_are_counted_and_late(release: str, work: Path) -> None:
    run("durable.sh", "test-cache-fua.toml", work, release)
    count, late = Counter[str](), Counter[str]()
    for interval in lines(work / "watch.json"):
        (device,) = interval["devices"]
        for one in device["interval"]["classes"] or []:
            count[one["class"]] += one["count"]
            late[one["class"]] += one["late"]
    # Each is a write with FUA, which takes 2 ms, and a flush, which takes 3 ms.
    assert (count["rt2"], count["best_effort"]) == (40, 10)
    assert +late == {"rt2": 40}


def test_a_declared_task_that_breaks_something_is_shown_and_found(work: Path) -> None:
    run("declared.sh", "test-plain.toml", work)
    shown = [
        task
        for interval in lines(work / "watch.json")
        for device in interval["devices"]
        for task in (device["interval"] or {"declared": []})["declared"]
    ]
    assert {task["level"] for task in shown} == {2}
    assert {task["state"] for task in shown} == {"armed", "no-limits"}
    # dd reads again without a pause: all jobs but the first come before their time.
    early = sum(task["faults"].get("early", 0) for task in shown)
    assert 10 <= early < 20
    texts = {}
    for name in ("early", "unarmed", "end"):
        document = json.loads((work / f"{name}.json").read_text("utf-8"))
        texts[name] = {one["id"]: one["text"] for one in document["findings"]}
    assert set(texts["early"]) == {"declared-faults"}
    assert f"early {early} in {early + 1} jobs" in texts["early"]["declared-faults"]
    assert set(texts["unarmed"]) == {"declared-unarmed", "declared-faults"}
    assert "no-limits" in texts["unarmed"]["declared-unarmed"]
    assert texts["end"] == {}


def test_the_wear_of_a_drive_takes_root(work: Path) -> None:
    run("drive.sh", "test-nvme.toml", work)
    (drive,) = lines(work / "root.json")[-1]["devices"]
    expected = {
        "used_ratio": 0.0,
        "reserve": "normal",
        "spare_ratio": 1.0,
        "media_errors": 0,
    }
    assert drive["wear"] == expected
    (drive,) = lines(work / "nobody.json")[-1]["devices"]
    assert drive["wear"] is None and drive["interval"]["reads"]["count"] == 0
    said = (work / "said").read_text("utf-8")
    assert said.count("reading an NVMe drive's wear needs root") == 1


@pytest.mark.parametrize("release", RELEASES)
def test_a_late_request_is_told_with_its_cause_and_its_trace_is_kept(
    release: str, work: Path
) -> None:
    run("late.sh", "test-plain.toml", work, release)
    said = (work / "said").read_text("utf-8").splitlines()
    (told,) = (line for line in said if "late: " in line)
    # It waited for one of the 512 KiB reads, which take 6 ms.
    assert re.search(r"late: \d{4}\.\d+ us  read 4 KiB on mmcblk0 sector \d+ by dd", told), told
    assert "in flight" in told and told.endswith("; trace in traces/late-1"), told
    assert any("tracing for late requests has ended: 1 traces are kept" in line for line in said)
    trace = json.loads((work / "trace.json").read_text("utf-8"))
    assert {group["op"] for group in trace["requests"]} == {"read"}
    ended = (work / "ended").read_text("utf-8")
    reason = r"tracing ended: \d{4}\.\d us for a real-time request of level 4 on"
    assert re.search(reason, ended), ended
