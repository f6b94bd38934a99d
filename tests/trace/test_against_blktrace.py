# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady trace` next to blktrace on one load: the same requests, and the same times.

Both have a probe at the same tracepoints, so their times of one request differ by the delay between
two probes. In a guest this is one reading of its virtual clock. On this machine it can be anything,
so the test only prints it; tests/bench/trace_agreement.py measures it.
"""

from __future__ import annotations

from pathlib import Path

import kernel_scripts
import pytest
from blk_tracer import why_not
from blktrace_events import btt_d2c, read_blktrace
from both import trace_with_both
from kept import Kept, read_kept
from releases import RELEASES
from stays import compare
from steady_lab.paths import GUEST_PROJECT

pytestmark = pytest.mark.waits_for_cargo

SCRIPT = Path(__file__).parent / "beside_blktrace.sh"
CLOCK_STEP_NS = 256
# Requests, about; fewer would mean that the load did not run.
HOST_IOS = 1200
EXPECTED_MIN = {"raw": 500, "ext4": 300}


@pytest.mark.parametrize("load", ["raw", "ext4"])
@pytest.mark.parametrize("release", RELEASES)
def test_guest_agrees_with_blktrace(release: str, load: str, work: Path) -> None:
    print(f"replay: scripts/test -k 'test_guest_agrees_with_blktrace and {release}-{load}'")
    more = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady", "STEADY_LOAD": load}
    result = kernel_scripts.run(SCRIPT, release, work, more)
    assert result.exit_status == 0, result.output[-3000:]

    kept = read_kept(work / "kept")
    (dev,) = {request["dev"] for request in kept.requests}
    agreement = compare(kept.found(dev), read_blktrace("card", work))
    print(agreement)
    assert not agreement.only_here + agreement.only_there and not agreement.apart
    assert len(agreement.d2c_off_ns) >= EXPECTED_MIN[load]
    assert max(agreement.d2c_off_ns) <= CLOCK_STEP_NS
    assert max(agreement.q2c_off_ns) <= CLOCK_STEP_NS
    assert kept.account["unmatched"] == kept.account["events_lost"] == 0
    # btt loses sight of bios that the block layer cuts, which this load has none of.
    if load == "raw":
        expect_btts_figures(kept, work)


def expect_btts_figures(kept: Kept, work: Path) -> None:
    """Compare the least, the mean and the largest D2C; btt counts a request once for each bio."""
    d2c_ns: list[int] = []
    for request, found in zip(kept.requests, kept.found(kept.requests[0]["dev"]), strict=True):
        assert not request["cut_from_bio"]
        d2c_ns += [stay.d2c_ns for stay in found.stays] * (1 + request["merged"])
    summary = btt_d2c("card", work)
    print(f"btt: {summary}")
    assert summary.count == len(d2c_ns)
    assert abs(summary.minimum_ns - min(d2c_ns)) <= CLOCK_STEP_NS
    assert abs(summary.maximum_ns - max(d2c_ns)) <= CLOCK_STEP_NS
    assert abs(summary.mean_ns - sum(d2c_ns) / len(d2c_ns)) <= CLOCK_STEP_NS


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("file_system", ["raw", "ext4"])
def test_this_machine_agrees_with_blktrace(file_system: str, work: Path) -> None:
    print(f"replay: scripts/test -k 'test_this_machine_agrees_with_blktrace and {file_system}'")
    kept, agreement = trace_with_both(file_system == "ext4", HOST_IOS, work)
    print(agreement, kept.account)
    assert not agreement.only_here + agreement.only_there and not agreement.apart
    assert len(agreement.d2c_off_ns) >= HOST_IOS // 2
    expect_spans_add_up(kept)
    assert kept.account["unmatched"] == kept.account["events_lost"] == 0


def expect_spans_add_up(kept: Kept) -> None:
    """Expect that each I/O's spans are its whole time, to the ns."""
    assert len(kept.ios) >= HOST_IOS // 2
    wrong = [io for io in kept.ios if sum(io["spans_ns"]) != io["exited_ns"] - io["entered_ns"]]
    assert wrong == []
