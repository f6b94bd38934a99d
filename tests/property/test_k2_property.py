# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random I/O on k2 in a guest: every event in the trace must be one that the model allows.

Hypothesis chooses streams, knobs, changes of knobs, driver retries and bad sectors, the same in
each run. A failure prints the stream and the line that repeats it: $K2_STREAM replaces the choice.
"""

import json
import os
from pathlib import Path
from typing import Any

import k2_model
import kernel_scripts
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from releases import MODULE_RELEASES
from steady_lab.paths import GUEST_PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

# Each is a boot of some seconds.
EXAMPLES = 5
REGION_KIB = 1024

KNOBS = st.one_of(
    st.tuples(st.just("inflight_max"), st.integers(1, 6)),
    st.tuples(st.just("split_kib"), st.sampled_from([0, 4, 12, 64])),
    st.tuples(st.just("background_wait_ms_max"), st.sampled_from([0, 1, 3])),
    st.tuples(st.just("rt_block_us"), st.sampled_from([0, 60, 500])),
)
STREAMS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "jobs": st.integers(2, 4),
        "rt_jobs": st.integers(0, 2),
        "depth": st.integers(2, 12),
        "largest_kib": st.sampled_from([32, 128, 512]),
        "hint_percent": st.sampled_from([0, 30]),
        "block_bytes": st.sampled_from([512, 4096]),
        "inflight_max": st.integers(1, 5),
        "split_kib": st.sampled_from([0, 0, 0, 4, 20]),
        "rt_block_us": st.sampled_from([60, 500, 0]),
        "rt_strict": st.sampled_from([1, 0]),
        "background_wait_ms_max": st.sampled_from([0, 0, 1, 4]),
        "requeue_every": st.sampled_from([0, 3, 11]),
        "bad_sectors": st.lists(st.integers(0, 2 * REGION_KIB * 2), max_size=6),
        "changes": st.lists(KNOBS, max_size=8),
    }
)


def run_stream(stream: dict[str, Any], release: str, work: Path) -> Path:
    """Boot, run the stream, and return the trace."""
    kernel_scripts.build_helpers()
    knobs = ("inflight_max", "split_kib", "background_wait_ms_max", "rt_block_us", "rt_strict")
    keys = ("seed", "jobs", "rt_jobs", "depth", "largest_kib", "hint_percent", "block_bytes")
    io = [f"{key}={stream[key]}" for key in keys]
    every = stream["requeue_every"]
    result = uml(release, "debug").boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/property/k2_stream.sh"],
            work=work,
            modules=["null_blk nr_devices=0" + (f" requeue={every},100,0,-1" if every else "")],
            environment={
                "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
                "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
                "K2_BLOCK_BYTES": str(stream["block_bytes"]),
                "K2_KNOBS": " ".join(f"{name}={stream[name]}" for name in knobs),
                "K2_CHANGES": " ".join(f"{name}={value}" for name, value in stream["changes"]),
                "K2_BAD_SECTORS": " ".join(str(sector) for sector in stream["bad_sectors"]),
                "K2_IO": " ".join([*io, f"region_kib={REGION_KIB}", "ios=50", "errors=1"]),
            },
        )
    )
    print(result.output)
    assert result.exit_status == 0, result.output[-2000:]
    in_buffer, written = result.output.split("written: ")[1].split()[0].split("/")
    assert in_buffer == written, "the trace buffer is too small"
    return work / "trace"


def check_stream(stream: dict[str, Any], release: str, work: Path) -> None:
    print(f"replay: K2_STREAM='{json.dumps(stream)}' scripts/test -k 'k2_keeps and {release}'")
    trace = run_stream(stream, release, work)
    model = k2_model.Model(
        *(stream[key] for key in ("inflight_max", "split_kib", "background_wait_ms_max")),
        *(stream[key] for key in ("rt_block_us", "rt_strict", "block_bytes")),
    )
    with trace.open() as lines:
        model.check(lines)
    print(model.counts)
    assert model.counts.get("k2_dispatch", 0) > 50, "the stream did not reach k2"


@pytest.mark.parametrize("release", MODULE_RELEASES)
def test_k2_keeps_to_the_model(release: str, work: Path) -> None:
    if "K2_STREAM" in os.environ:
        check_stream(json.loads(os.environ["K2_STREAM"]), release, work)
        return

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(STREAMS)
    def each(stream: dict[str, Any]) -> None:
        check_stream(stream, release, work)

    each()
