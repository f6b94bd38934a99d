# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady tune` on the emulated card with a command queue."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from steady_lab.pages.tune_section import read_tune_sections
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "test-queue.toml"
HERE = f"{GUEST_PROJECT}/tests/tune"
SPEC = PROJECT / "docs" / "spec"


def boot(script: str, work: Path) -> None:
    environment = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_TESTS": HERE,
        "LOAD": f"{HERE}/load.toml",
    }
    request = BootRequest(["sh", f"{HERE}/{script}"], work, device=CARD, environment=environment)
    result = uml().boot(request)
    logs = "\n".join(path.read_text() for path in work.glob("*.log"))
    assert result.exit_status == 0, f"{result.output[-3000:]}\n{logs[-3000:]}"


def report(work: Path, name: str) -> dict[str, Any]:
    """Return a report that keeps to the published schemas."""
    found: dict[str, Any] = json.loads((work / f"{name}.json").read_text(encoding="utf-8"))
    for part, file in [(found, "tune-1"), (found["record"], "bench-record-1")]:
        schema = json.loads((SPEC / f"{file}.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(part, schema)
    runs = len(found["points"]) + (found["none"] is not None)
    assert len(found["record"]["results"]) == runs
    # The lab's page of it reads all of it.
    (section,) = read_tune_sections([work / f"{name}.json"])
    assert len(section.rows) == runs
    return found


def test_it_bisects_to_what_the_objective_says_and_restores_the_knobs(work: Path) -> None:
    boot("search.sh", work)
    before = (work / "before").read_text()
    found = report(work, "o2")
    print((work / "o2.txt").read_text())
    # It begins with 3, which excludes 8 and 16.
    kept = {one["knobs"]["inflight_max"]: one["is_met"] for one in found["points"]}
    assert kept == {2: False, 3: True}
    assert found["pick"]["knobs"] == {"inflight_max": 3, "rt_block_us": 0}
    assert found["candidates"] == 4
    assert found["contradictions"] == []
    assert found["confidence"]["is_enough"]
    assert not found["pick"]["is_applied"]
    assert (work / "o2.knobs").read_text() == before

    none = report(work, "unattainable")
    assert (work / "unattainable.status").read_text() == "3\n"
    assert none["pick"] is None
    assert none["nearest"] == {"inflight_max": 2, "rt_block_us": 0}
    assert "nearest: inflight_max=2, " in (work / "unattainable.txt").read_text()

    said = (work / "unknown.log").read_text()
    assert (work / "unknown.status").read_text() == "1\n"
    assert "iosched/depth" in said
    assert "no such knob; scheduler k2 has: iosched/background_wait_ms_max, " in said
    assert "measurement" not in said, "something was measured first"
    assert not (work / "unknown.json").exists()
    assert (work / "unknown.knobs").read_text() == before


def test_knobs_are_restored_after_an_interrupt_and_stay_after_apply(work: Path) -> None:
    boot("knobs.sh", work)
    before = (work / "before").read_text()
    assert "[bfq]" in before
    assert (work / "interrupted.status").read_text() == "130\n"
    assert (work / "interrupted.knobs").read_text() == before
    assert (work / "left-over").read_text() == "", "fio outlived steady"
    assert not (work / "interrupted.json").exists()

    pick = report(work, "applied")["pick"]
    knobs = (work / "applied.knobs").read_text()
    assert pick["is_applied"]
    assert pick["knobs"]["inflight_max"] == 2
    assert pick["commands"][0] == "echo k2 >/sys/block/mmcblk0/queue/scheduler"
    assert "[k2]" in knobs
    assert "inflight_max <==\n2\n" in knobs
    assert "rt_block_us <==\n0\n" in knobs
    # The next run finds no run that was killed, and nothing to restore.
    assert "killed" not in (work / "next.log").read_text()
    assert (work / "next.knobs").read_text() == knobs


def test_a_queue_shorter_than_the_kernel_takes_is_restored(work: Path) -> None:
    """A disk with one tag has nr_requests 2; 4 is the least that can be written."""
    steady = f"{GUEST_PROJECT}/build/bin/steady with --device /dev/sda"
    commands = (
        "cd /sys/block/sda/queue",
        "echo mq-deadline >scheduler",
        "echo 5 >iosched/writes_starved",
        "cat nr_requests iosched/writes_starved",
        f"{steady} --knob scheduler=mq-deadline --knob queue/nr_requests=256 -- cat nr_requests",
        f"{steady} --knob scheduler=k2 --knob queue/nr_requests=256 -- cat nr_requests",
        "cat scheduler nr_requests iosched/writes_starved",
    )
    card = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-scsi.toml"
    result = uml().boot(BootRequest(["sh", "-ec", "\n".join(commands)], work, device=card))
    assert result.exit_status == 0, result.output
    assert result.output.split()[:4] == ["2", "5", "256", "256"]
    assert "[mq-deadline]" in result.output
    assert result.output.split()[-2:] == ["2", "5"]
