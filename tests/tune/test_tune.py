# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady tune` on the emulated card with a command queue."""

import json
from pathlib import Path
from typing import Any

import jsonschema
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
    assert len(found["record"]["results"]) == len(found["points"]) + 1, "and without a scheduler"
    return found


def best_of(sweep: dict[str, Any], goal: dict[str, Any]) -> dict[str, int]:
    """Return what the objective says of all points, as the paper states it."""
    if goal["best"] == "throughput":
        kept = [one for one in sweep["points"] if one["tail_ns"] <= goal["tail_ns_max"]]
        best = max(kept, key=lambda one: one["mib_s"])
    else:
        kept = [one for one in sweep["points"] if one["mib_s"] >= goal["mib_s_min"]]
        best = min(kept, key=lambda one: one["tail_ns"])
    knobs: dict[str, int] = best["knobs"]
    return knobs


def test_it_picks_what_the_full_sweep_picks_from_a_third_of_it(work: Path) -> None:
    boot("search.sh", work)
    sweep = report(work, "all")
    assert len(sweep["points"]) == sweep["candidates"] == 13
    for name in ("o1", "o2"):
        found = report(work, name)
        print((work / f"{name}.txt").read_text())
        assert len(found["points"]) <= 13 / 3
        assert found["contradictions"] == []
        assert found["confidence"]["is_enough"]
        assert found["pick"]["knobs"] == best_of(sweep, found["goal"])
        # Not at an end, where anything would do.
        assert 1 < found["pick"]["knobs"]["inflight_max"] < 16


def test_knobs_stay_as_they_were_unless_the_pick_is_applied(work: Path) -> None:
    boot("knobs.sh", work)
    before = (work / "before").read_text()
    assert "[bfq]" in before
    assert not report(work, "measured")["pick"]["is_applied"]
    assert (work / "measured.knobs").read_text() == before

    assert (work / "interrupted.status").read_text() == "130\n"
    assert (work / "interrupted.knobs").read_text() == before
    assert (work / "left-over").read_text() == "", "fio outlived steady"
    assert not (work / "interrupted.json").exists()

    pick = report(work, "applied")["pick"]
    knobs = (work / "applied.knobs").read_text()
    assert pick["is_applied"]
    assert pick["commands"][0] == "echo k2 >/sys/block/mmcblk0/queue/scheduler"
    assert "[k2]" in knobs
    assert f"inflight_max <==\n{pick['knobs']['inflight_max']}\n" in knobs
    assert "rt_block_us <==\n0\n" in knobs
    # The next run finds no run that was killed, and nothing to restore.
    assert "killed" not in (work / "next.log").read_text()
    assert (work / "next.knobs").read_text() == knobs
