# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of a namespace through the character device of an emulated SSD, in the guest."""

import json
from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

DRIVE = PROJECT / "experiments" / "devices" / "test-nvme.toml"


def boot(script: str, release: str, work: Path) -> None:
    environment = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
    }
    command = ["sh", f"{GUEST_PROJECT}/tests/direct/{script}"]
    result = uml(release).boot(BootRequest(command, work, device=DRIVE, environment=environment))
    print(result.output)
    assert result.exit_status == 0 and "all done" in result.output, result.output[-3000:]


@pytest.mark.parametrize("release", RELEASES)
def test_a_part_of_a_namespace_is_all_that_is_reached(release: str, work: Path) -> None:
    boot("nvme.sh", release, work)


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_time_call_waits_for_one_background_command(release: str, work: Path) -> None:
    boot("levels.sh", release, work)

    def latencies(name: str) -> list[dict[str, int]]:
        results = json.loads((work / f"{name}.json").read_text())["results"]
        return [result["latency_ns"] for result in results]

    ways = map(latencies, ("alone", "command", "real-time", "background"))
    for alone, command, real_time, background in zip(*ways, strict=True):
        print(alone, command, real_time, background, sep="\n")
        assert real_time["max"] <= 1.1 * (alone["max"] + command["max"])
        # Without a level it takes its turn after the four.
        assert background["p50"] >= 3 * command["p50"]
    assert json.loads((work / "real-time.json").read_text())["background"]["mib_s"] > 100
