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


CACHE = {"cache-flush": "mmc cache disable /dev/mmcblk0"}
GROUP = "/sys/fs/cgroup/blkio/slow/blkio.throttle.write_bps_device"
DISCARD = {"discard": "mount -o remount,nodiscard /tmp/data"}
# Script, device, modules, and by record the findings with the commands that fix them.
PROVOKED: list[tuple[str, str, list[str], dict[str, dict[str, str]]]] = [
    (
        "layers.sh",
        "test-plain",
        [],
        {
            "begin": {},
            "discard": DISCARD,
            "discard-fixed": {},
            "throttle": {"blkio-throttle": f"echo '179:0 0' > {GROUP}"},
            "throttle-fixed": {},
        },
    ),
    (
        "card.sh",
        "test-cache-fua",
        ["chario"],
        {
            # A cache that nobody flushes is no finding.
            "begin": {},
            "mounted": DISCARD | CACHE,
            "unmounted": {},
            "partitioned": {},
            "lane": {"lane": "echo mmcblk0p1 > /sys/bus/mmc/drivers/chario/end_lane"},
            "lane-fixed": {},
        },
    ),
]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("script", "device", "modules", "records"), PROVOKED)
def test_a_finding_is_provoked_and_gone_after_its_fix(
    script: str,
    device: str,
    modules: list[str],
    records: dict[str, dict[str, str]],
    release: str,
    work: Path,
) -> None:
    project = str(GUEST_PROJECT)
    request = BootRequest(
        ["sh", f"{project}/tests/doctor/{script}"],
        work,
        device=PROJECT / "experiments" / "devices" / f"{device}.toml",
        environment={"STEADY": f"{project}/build/bin/steady"},
        modules=modules,
    )
    result = uml(release).boot(request)
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    assert {name: findings(work / f"{name}.json") for name in records} == records


@pytest.mark.nightly("writeback throttling, which the lab's kernels lack, left on")
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
