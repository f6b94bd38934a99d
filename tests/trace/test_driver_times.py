# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady trace` on the kernel's SCSI and NVMe drivers.

Their disks take 100 us for each command, to the ns.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import kernel_scripts
import pytest
from kept import read_kept
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT

pytestmark = pytest.mark.waits_for_cargo

HERE = Path(__file__).parent
# Set by scsi_times.sh and nvme_times.sh.
COMMAND_NS = 100_000
# What scsi_debug takes for SYNCHRONIZE CACHE, whatever the delay of other commands.
SCSI_FLUSH_NS = 50_000_000
# Between the disk's timer and the driver's events are some readings of the guest's clock, each of
# which takes a step of it.
SLACK_NS = 16 * 256
ISSUED, HARDWARE_START, HARDWARE_DONE, COMPLETED = 3, 4, 5, 6
# Made by driver_load.sh.
THREADS = 4
COUNTS = {
    ("read", 4 << 10): 200,
    ("write", 64 << 10): 200,
    ("write", 4 << 10): 1,
    ("flush", 0): 1,
    ("discard", 8 << 20): 1,
}


def trace_of(disk: str, release: str, work: Path) -> list[dict[str, Any]]:
    """Run DISK_times.sh in the guest; return the load's requests, all of which were followed."""
    print(f"replay: scripts/test -k 'test_{disk} and {release}'")
    more = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    result = kernel_scripts.run(HERE / f"{disk}_times.sh", release, work, more)
    assert result.exit_status == 0, result.output[-3000:]
    record = json.loads((work / "record.json").read_text())
    kept = read_kept(work / "kept")
    for account in (record["account"], kept.account):
        print(account)
        assert account["matched"] == len(kept.requests)
        for nothing in ("events_lost", "at_the_edges", "hit_by_loss", "unmatched"):
            assert account[nothing] == 0
    flushes = {group["op"]: group["count"] for group in record["flushes_and_discards"]}
    assert flushes == {"flush": 1, "discard": 1}
    assert Counter((one["op"], one["bytes"]) for one in kept.requests) == COUNTS
    return kept.requests


def expect_known_times(requests: list[dict[str, Any]], start: int, flush_ns: int) -> None:
    """From `start` to the driver's end, a command takes the time that the disk is set to."""
    off_ns = {}
    for request in requests:
        marks = request["marks_ns"]
        assert None not in (marks[start], marks[HARDWARE_DONE]), request
        assert marks[ISSUED] <= marks[start] < marks[HARDWARE_DONE] <= marks[COMPLETED], request
        told_ns = flush_ns if request["op"] == "flush" else COMMAND_NS
        where = (request["op"], request["sector"], marks[ISSUED])
        off_ns[where] = marks[HARDWARE_DONE] - marks[start] - told_ns
    print("device span less the disk's time, ns:", Counter(off_ns.values()))
    assert {where: ns for where, ns in off_ns.items() if not 0 <= ns <= SLACK_NS} == {}


def expect_several_at_once(requests: list[dict[str, Any]]) -> None:
    """The commands of all threads were under way together, and few of them began together.

    So one that was taken for another's would be off by more than the slack.
    """
    reads = [one["marks_ns"] for one in requests if one["op"] == "read"]
    issued = sorted(marks[ISSUED] for marks in reads)
    apart_ns = [later - earlier for earlier, later in itertools.pairwise(issued)]
    print("issues apart by, ns:", sorted(apart_ns))
    middle = issued[len(issued) // 2]
    open_then = sum(marks[ISSUED] <= middle < marks[HARDWARE_DONE] for marks in reads)
    assert open_then == THREADS
    assert sum(apart > SLACK_NS for apart in apart_ns) > len(apart_ns) // 2


@pytest.mark.parametrize("release", RELEASES)
def test_scsi_commands_are_found_and_take_the_disks_time(release: str, work: Path) -> None:
    requests = trace_of("scsi", release, work)
    expect_several_at_once(requests)
    expect_known_times(requests, HARDWARE_START, SCSI_FLUSH_NS)


@pytest.mark.parametrize("release", RELEASES)
def test_nvme_commands_are_found_and_take_the_disks_time(release: str, work: Path) -> None:
    requests = trace_of("nvme", release, work)
    expect_several_at_once(requests)
    # The command is prepared before the issue, so no event shows a later start.
    assert {one["marks_ns"][HARDWARE_START] for one in requests} == {None}
    expect_known_times(requests, ISSUED, COMMAND_NS)
