# SPDX-License-Identifier: MIT OR Apache-2.0
"""A trace kept on another kernel, read on this one."""

import json
import subprocess
from pathlib import Path

import pytest
from steady_lab.boots.boot import BootRequest, boot
from steady_lab.kernels.source import RELEASES
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT

CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
READS = 50


@pytest.mark.parametrize("release", RELEASES)
def test_a_trace_kept_in_the_guest_is_read_on_the_host(release: str, work: Path) -> None:
    trace = f"{GUEST_PROJECT}/build/bin/steady trace --device mmcblk0 --keep kept --json"
    read = f"dd if=/dev/mmcblk0 of=/dev/null bs=4k count={READS} iflag=direct"
    script = f"{trace} -- {read} >there.json"
    result = boot(BootRequest(["sh", "-c", script], work, device=CARD, release=release))
    assert result.exit_status == 0, result.output
    there = json.loads((work / "there.json").read_text())
    steady = BUILD / "bin" / "steady"
    done = subprocess.run(
        [steady, "trace", "--json", work / "kept"], capture_output=True, text=True, check=True
    )
    here = json.loads(done.stdout)
    assert here["account"]["matched"] == READS
    assert here["account"]["unmatched"] == 0
    assert here["requests"][0]["device"] == "mmcblk0"
    # All of it is the guest's, none of this machine.
    assert here == there
