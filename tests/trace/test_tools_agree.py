# SPDX-License-Identifier: MIT OR Apache-2.0
"""trace-cmd and ftrace record one load: `steady trace` finds the same in all of it."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

STEADY = PROJECT / "build" / "bin" / "steady"
RECORD = "device/trace/tests/traces/record-in-guest.sh"
DEVICE = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-cache.toml"
FILES = ("report.txt", "trace.txt", "trace.dat")


def traced(file: Path) -> dict[str, Any]:
    """The record of a trace in which nothing is missing."""
    command = [str(STEADY), "trace", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout[:2000]}"
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def requests(record: dict[str, Any]) -> Counter[tuple[str, int]]:
    """How many of each operation and size. Only ftrace tells whose they are."""
    counts: Counter[tuple[str, int]] = Counter()
    for group in [*record["requests"], *record["flushes_and_discards"]]:
        counts[group["op"], group["size_bytes_max"]] += group["count"]
    return counts


@pytest.mark.parametrize("release", RELEASES)
def test_all_tools_tell_the_same_requests(release: str, work: Path) -> None:
    print("replay: scripts/test -k all_tools_tell_the_same_requests")
    command = ["sh", f"{GUEST_PROJECT}/{RECORD}"]
    result = uml(release).boot(BootRequest(command=command, work=work, device=DEVICE))
    assert result.exit_status == 0, result.output[-3000:]
    found = {name: requests(traced(work / name)) for name in FILES}
    expected = found["report.txt"]
    assert expected["read", 16384] >= 4, expected
    assert expected["flush", 0] >= 1, expected
    assert all(counts == expected for counts in found.values()), found
