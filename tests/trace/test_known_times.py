# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady trace` on the lab's card, whose time for each command is known to the ns."""

from __future__ import annotations

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

SCRIPT = Path(__file__).parent / "known_times.sh"
# Between the driver's events and the card's own clock are some readings of the guest's clock, each
# of which takes a step of it.
SLACK_NS = 16 * 256
HARDWARE_START, HARDWARE_DONE, COMPLETED = 4, 5, 6
PIECE_BYTES = 64 << 10
WRITE_BYTES = 512 << 10


def modelled_ns(op: str, size_bytes: int) -> int:
    """Return the time of one command: experiments/devices/test-plain.toml.

    A write ends with the status that the kernel asks for.
    """
    base_ns, per_kib_ns = {"read": (100_000, 4_000), "write": (200_000 + 10_000, 8_000)}[op]
    return base_ns + per_kib_ns * (size_bytes >> 10)


@pytest.mark.parametrize("release", RELEASES)
def test_spans_are_those_of_the_card(release: str, work: Path) -> None:
    print(f"replay: scripts/test -k test_spans_are_those_of_the_card[{release}]")
    more = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    result = kernel_scripts.run(SCRIPT, release, work, more)
    assert result.exit_status == 0, result.output[-3000:]
    # This kernel has no events of system calls: the record reports that, and invents no results.
    assert "missing event syscalls:" in result.output, result.output[-3000:]

    expect_times_alone(read_kept(work / "alone").requests)
    kept = read_kept(work / "split")
    assert kept.ios == []
    expect_pieces(kept.requests)
    expect_named(json.loads((work / "split.json").read_text()))


def expect_times_alone(requests: list[dict[str, Any]]) -> None:
    """Each request takes what the model says, and nothing of the driver's is in that."""
    off_ns = {}
    for request in requests:
        marks = request["marks_ns"]
        seen_ns = (marks[HARDWARE_DONE] or marks[COMPLETED]) - marks[HARDWARE_START]
        where = (request["op"], request["bytes"], request["sector"])
        off_ns[where] = seen_ns - modelled_ns(request["op"], request["bytes"])
    print("device span less the model's time, ns:", Counter(off_ns.values()))
    assert len(off_ns) == 200
    wrong = {where: ns for where, ns in off_ns.items() if not 0 <= ns <= SLACK_NS}
    assert wrong == {}


def expect_pieces(requests: list[dict[str, Any]]) -> None:
    """What k2 split is shown as its pieces, each with the time of a command of that size."""
    large = [one for one in requests if one["op"] == "write" and one["bytes"] == WRITE_BYTES]
    assert len(large) == 40
    for request in large:
        pieces = request["pieces"]
        assert [piece["bytes"] for piece in pieces] == [PIECE_BYTES] * 8, request
        for number, piece in enumerate(pieces):
            assert piece["sector"] == request["sector"] + number * PIECE_BYTES // 512
            start_ns, done_ns = piece["hardware_ns"]
            off_ns = (done_ns or piece["ended_ns"]) - start_ns - modelled_ns("write", PIECE_BYTES)
            assert 0 <= off_ns <= SLACK_NS, request


def expect_named(record: dict[str, Any]) -> None:
    """The real-time read that took longest waited behind one such write, which is named."""
    worst = next(one for one in record["worst_requests"] if one["op"] == "read")
    print(json.dumps(worst, indent=1))
    (behind,) = [cause for cause in worst["causes"] if cause["cause"] == "behind"]
    assert behind["requests"] == 1
    assert behind["longest"]["op"] == "write"
    assert behind["longest"]["bytes"] == WRITE_BYTES
    assert behind["longest"]["comm"] == "dd"
    # Never behind more than the piece that the card has.
    assert worst["spans"]["block_ns"] <= modelled_ns("write", PIECE_BYTES) + SLACK_NS
