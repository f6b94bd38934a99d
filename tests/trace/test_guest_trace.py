# SPDX-License-Identifier: MIT OR Apache-2.0
"""A trace kept on another kernel, read on this one; and of a partition there."""

import json
import subprocess
from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.devices.spec import load_device
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
READS = 50
NODE = load_device(CARD).kind.node
NAME = Path(NODE).name


@pytest.mark.parametrize("release", RELEASES)
def test_a_trace_kept_in_the_guest_is_read_on_the_host(release: str, work: Path) -> None:
    trace = f"{GUEST_PROJECT}/build/bin/steady trace --device {NAME} --keep kept --json"
    read = f"dd if={NODE} of=/dev/null bs=4k count={READS} iflag=direct"
    script = f"{trace} -- {read} >there.json"
    result = uml(release).boot(BootRequest(["sh", "-c", script], work, device=CARD))
    assert result.exit_status == 0, result.output
    there = json.loads((work / "there.json").read_text())
    steady = BUILD / "bin" / "steady"
    done = subprocess.run(
        [steady, "trace", "--json", work / "kept"], capture_output=True, text=True, check=True
    )
    here = json.loads(done.stdout)
    assert here["account"]["matched"] == READS
    assert here["account"]["unmatched"] == 0
    assert here["requests"][0]["device"] == NAME
    # All of it is the guest's, none of this machine.
    assert here == there


@pytest.mark.parametrize("release", RELEASES)
def test_of_a_partition_only_its_own_requests_are_shown(release: str, work: Path) -> None:
    trace = f"{GUEST_PROJECT}/build/bin/steady trace --device {NAME}p1 --json"
    read = "dd of=/dev/null iflag=direct status=none"
    load = [
        f"{read} if={NODE}p1 bs=4k count=10 & {read} if={NODE}p2 bs=8k count=10 & wait",
        f"{read} if={NODE} bs=16k count=10",
        f"dd if=/dev/zero of={NODE}p1 bs=32k count=1 oflag=direct conv=fsync status=none",
    ]
    (work / "load").write_text("\n".join(load))
    # Begin and length in sectors.
    parts = f"addpart {NODE} 1 2048 16384 && addpart {NODE} 2 32768 16384"
    script = f"{parts} && {trace} -- sh ./load >record.json && delpart {NODE} 1 && delpart {NODE} 2"
    result = uml(release).boot(BootRequest(["sh", "-c", script], work, device=CARD))
    assert result.exit_status == 0, result.output
    record = json.loads((work / "record.json").read_text())
    found = {(one["op"], one["size_bytes_max"]): one["count"] for one in record["requests"]}
    assert found == {("read", 4096): 10, ("write", 32768): 1}
    assert {one["device"] for one in record["requests"]} == {NAME}
    assert record["scope"]["requests_hidden"] == 20
    assert record["account"]["unmatched"] == 0
