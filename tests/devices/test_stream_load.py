# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 next to real-time threads with all kinds of arrivals, on the modelled card of the K2-split
paper, without a kernel (lab/simulate/stream_load.c): the background keeps its throughput, and the
p99 its bound."""

from __future__ import annotations

import pytest
from steady_lab.devices.ssd_load import build
from stream_loads import LOADS, SEEDS, UNCUT, mean, p99_ms, run

pytestmark = pytest.mark.reads("lab", "kernel", "experiments")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build()


@pytest.mark.parametrize("name", LOADS)
def test_the_background_keeps_its_throughput_and_real_time_its_bound(name: str) -> None:
    load = LOADS[name]
    words = [(f"load_seed={seed}", f"seconds={load.seconds}") for seed in SEEDS]
    results = [run(load.threads, *word) for word in words]
    background = mean([result["bg_mib_s"] for result in results])
    print(f"background {background:.1f} MiB/s, p99 {p99_ms(results):.3f} ms")
    assert background >= load.background_min
    assert p99_ms(results) <= load.p99_max


def test_a_lower_level_is_cut_for_a_higher_one_only_as_far_as_it_can_bear() -> None:
    threads = ("poisson_us=20000 kib=4 level=0", "poisson_us=20000 kib=64 level=6")
    result = run(threads, "bg_depth=0", "seconds=120")
    high, low = result["threads"]
    # Without a scheduler: 0.96 and 1.10 ms.
    assert high["p99_ms"] <= 0.75
    assert low["p99_ms"] <= 1.5


def test_writes_that_take_as_long_in_pieces_are_not_cut() -> None:
    result = run(("poisson_us=20000",), *UNCUT)
    # In pieces of 4 KiB: 0.2 MiB/s at the same p99.
    assert result["bg_mib_s"] >= 20
    assert p99_ms([result]) <= 20.5


def test_writes_that_fit_between_no_two_requests_are_held_for_100_ms() -> None:
    result = run(("period_us=20000 jitter_us=200",), *UNCUT)
    assert result["bg_mib_s"] >= 3.5
    assert p99_ms([result]) <= 1.5
