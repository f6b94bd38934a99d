# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady doctor` on a card in the guest: each line that it gives takes its finding away."""

import json
from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "test-plain.toml"


def findings(file: Path) -> dict[str, str | None]:
    """Names of findings, and the command that fixes each."""
    document = json.loads(file.read_text())
    return {finding["id"]: finding["fix"] for finding in document["findings"]}


@pytest.mark.parametrize("release", RELEASES)
def test_the_line_below_a_finding_mends_it(release: str, work: Path) -> None:
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    command = ["sh", f"{GUEST_PROJECT}/tests/doctor/doctor.sh"]
    result = uml(release).boot(BootRequest(command, work, device=CARD, environment=environment))
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    assert "begin 1" in result.output and "k2 0" in result.output and "end 0" in result.output
    choose = "echo k2 > /sys/block/mmcblk0/queue/scheduler"
    assert findings(work / "begin.json") == {"scheduler": choose}
    assert findings(work / "k2.json") == {}
    assert findings(work / "broken.json") == {
        "realtime-tasks": "steady with --device /dev/mmcblk0 --kworkers-fifo 31 -- PROGRAM"
    }
    assert findings(work / "raised.json") == {}
    assert json.loads((work / "k2.json").read_text())["unseen"] == []
