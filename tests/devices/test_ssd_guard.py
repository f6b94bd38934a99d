# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2's look-ahead on the model of an NVMe SSD next to fixed numbers in flight."""

import pytest
from steady_lab.devices.ssd_load import build, simulated

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")

RANDOM = "sequential=0"
SEQUENTIAL = "sequential=1"
# Its real-time process comes at any time within 4 ms of its last request.
IRREGULAR = "jitter_us=2000"
# A pace is found in the first seconds.
WRITES = ("write=1", "warm_ms=10000")
READS = ("half full", "write=0")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build()


def test_a_regular_stream_has_a_shorter_tail_than_with_one_in_flight() -> None:
    one = simulated(*READS, RANDOM, "bound=1")
    guarded = simulated(*READS, RANDOM, "bound=32", "rt_block_us=100")
    assert guarded["p999_us"] < one["p999_us"]
    assert guarded["mb_s"] > 8 * one["mb_s"]


@pytest.mark.parametrize("x", [2, 4, 8, 16])
def test_where_the_drive_reads_ahead_more_in_flight_are_not_better(x: int) -> None:
    fixed = simulated(*READS, SEQUENTIAL, f"bound={x}")
    guarded = simulated(*READS, SEQUENTIAL, "bound=32", "rt_block_us=100")
    assert guarded["p999_us"] < fixed["p999_us"]
    assert guarded["mb_s"] > fixed["mb_s"]


def test_with_the_default_no_16_in_flight_are_better() -> None:
    fixed = simulated(*READS, RANDOM, "bound=16")
    guarded = simulated(*READS, RANDOM, "bound=32", "rt_block_us=440")
    assert guarded["p999_us"] < fixed["p999_us"]
    assert guarded["mb_s"] > fixed["mb_s"]


def test_beside_an_irregular_stream_the_bound_decides_how_many_are_in_flight() -> None:
    alone = simulated(*READS, RANDOM, "processes=0", "bound=1")
    narrow = simulated(*READS, RANDOM, "bound=32", IRREGULAR, "rt_block_us=200")
    wide = simulated(*READS, RANDOM, "bound=32", IRREGULAR, "rt_block_us=440")
    one = simulated(*READS, RANDOM, "bound=1", IRREGULAR)
    assert narrow["p999_us"] <= alone["p99_us"] + 200
    assert wide["p999_us"] <= alone["p99_us"] + 440
    assert wide["mb_s"] > 5 * one["mb_s"]


@pytest.mark.parametrize(
    ("state", "order", "kept"),
    [
        ("half full", SEQUENTIAL, 0.87),
        ("full", RANDOM, 0.87),
        ("full", SEQUENTIAL, 0.8),
        # Map writes fill the buffer, too, and all dies erase at about the same time.
        ("half full", RANDOM, 0.5),
    ],
)
def test_paced_writes_have_a_shorter_tail_than_with_one_in_flight(
    state: str, order: str, kept: float
) -> None:
    one = simulated(state, *WRITES, order, "bound=1")
    paced = simulated(state, *WRITES, order, "bound=32", "rt_block_us=440")
    assert paced["p999_us"] < 0.4 * one["p999_us"]
    assert paced["mb_s"] > kept * one["mb_s"]


@pytest.mark.parametrize("state", ["half full", "full"])
def test_beside_reads_writes_are_paced_until_the_median_read_is_in_time(state: str) -> None:
    reads = ("write=0", RANDOM, "warm_ms=10000", "jitter_us=40")
    alone = simulated(state, *reads, "processes=0", "bound=1")
    paced = simulated(state, *reads, "bg_write=1", "bound=32", "rt_block_us=440")
    free = simulated(state, *reads, "bg_write=1", "bound=32")
    print(
        f"p50 {paced['p50_us']} us at {paced['mb_s']} MB/s, free {free['p50_us']}, {free['mb_s']}"
    )
    assert paced["p50_us"] <= alone["p50_us"] + 440 < free["p50_us"]
    assert paced["mb_s"] > 0.4 * free["mb_s"]
