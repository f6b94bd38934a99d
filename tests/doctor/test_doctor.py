# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady doctor` on a card in the guest: each line that it gives takes its finding away."""

import json
import sys
from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

sys.path.insert(0, str(PROJECT / "tests" / "stock"))
import guest

CARD = PROJECT / "experiments" / "devices" / "test-plain.toml"


def findings(file: Path) -> dict[str, str | None]:
    """Names of findings, and the command that fixes each."""
    document = json.loads(file.read_text())
    return {finding["id"]: finding["fix"] for finding in document["findings"]}


def boot(script: str, device: str, work: Path, release: str) -> str:
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    command = ["sh", f"{GUEST_PROJECT}/tests/doctor/{script}"]
    spec = PROJECT / "experiments" / "devices" / device
    result = uml(release).boot(BootRequest(command, work, device=spec, environment=environment))
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    return result.output


@pytest.mark.parametrize("release", RELEASES)
def test_what_stands_before_the_scheduler_is_found_and_gone_after_its_fix(
    release: str, work: Path
) -> None:
    boot("layers.sh", "test-plain.toml", work, release)
    assert findings(work / "begin.json") == {}
    fix = "mount -o remount,nodiscard /tmp/data"
    assert findings(work / "discard.json") == {"discard": fix}
    assert findings(work / "discard-fixed.json") == {}
    group = "/sys/fs/cgroup/blkio/slow/blkio.throttle.write_bps_device"
    fix = f"echo '179:0 0' > {group}"
    assert findings(work / "throttle.json") == {"blkio-throttle": fix}
    assert findings(work / "throttle-fixed.json") == {}


@guest.needs_qemu
def test_writeback_throttling_is_found_and_turned_off(work: Path) -> None:
    result = guest.run(PROJECT / "tests" / "doctor" / "throttled.sh", "6.12", work, ["nvme"])
    assert result.exit_status == 0, result.output
    fix = "echo 0 > /sys/block/nvme0n1/queue/wbt_lat_usec"
    assert findings(work / "begin.json") == {"writeback-throttling": fix}
    assert findings(work / "fixed.json") == {}
    assert findings(work / "applied.json") == {}


@pytest.mark.parametrize("release", RELEASES)
def test_the_line_below_a_finding_fixes_it(release: str, work: Path) -> None:
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
