# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2's look-ahead on the model of an NVMe SSD beside fixed numbers in flight."""

import json
import subprocess

import pytest
from ssd_paper import LOAD, NOT_THE_MODEL, SPEC
from steady_lab.devices.spec import load_device
from steady_lab.paths import PROJECT

RANDOM = "sequential=0"
SEQUENTIAL = "sequential=1"
# Its real-time process comes at any time within 4 ms of its last request.
IRREGULAR = "jitter_us=2000"


@pytest.fixture(scope="module", autouse=True)
def build() -> None:
    folder = PROJECT / "tests" / "devices"
    subprocess.run(["make", "-s", "-C", folder, f"../../{LOAD.relative_to(PROJECT)}"], check=True)


def simulated(*words: str) -> dict[str, float]:
    values = load_device(SPEC["half full"]).values
    drive = [f"{name}={value}" for name, value in values.items() if name not in NOT_THE_MODEL]
    done = subprocess.run(
        [str(LOAD), *drive, "write=0", *words], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("order", [RANDOM, SEQUENTIAL])
def test_a_regular_stream_has_a_shorter_tail_than_with_one_in_flight(order: str) -> None:
    one = simulated(order, "bound=1")
    guarded = simulated(order, "bound=32", "rt_block_us=100")
    assert guarded["p999_us"] < one["p999_us"]
    assert guarded["mb_s"] > 8 * one["mb_s"]


def test_with_the_default_no_16_in_flight_are_better() -> None:
    fixed = simulated(RANDOM, "bound=16")
    guarded = simulated(RANDOM, "bound=32", "rt_block_us=440")
    assert guarded["p999_us"] < fixed["p999_us"]
    assert guarded["mb_s"] > fixed["mb_s"]


def test_beside_an_irregular_stream_the_bound_decides_how_many_are_in_flight() -> None:
    alone = simulated(RANDOM, "processes=0", "bound=1")
    narrow = simulated(RANDOM, "bound=32", IRREGULAR, "rt_block_us=200")
    wide = simulated(RANDOM, "bound=32", IRREGULAR, "rt_block_us=440")
    one = simulated(RANDOM, "bound=1", IRREGULAR)
    assert narrow["p999_us"] <= alone["p99_us"] + 200
    assert wide["p999_us"] <= alone["p99_us"] + 440
    assert wide["mb_s"] > 5 * one["mb_s"]
