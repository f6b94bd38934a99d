# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each benchmark of scripts/bench still works; no time on a real clock is judged."""

from __future__ import annotations

import subprocess

import pytest
from steady_lab.paths import PROJECT
from verdicts import SOURCES, WITHOUT_STEADY

OF_MODULES = ["several-cpus", "policy", "guest"]
# These depend on this machine's file system and tracer, so they always run.
OF_THIS_KERNEL = ["recorder", "store", "trace-cost", "trace-parts"]
by_night = pytest.mark.nightly("a benchmark that no longer runs")
# This ends what hangs.
TIMEOUT_S = 1800


def bench(name: str) -> None:
    words = [str(PROJECT / "scripts" / "bench"), "--small", name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.reads(*WITHOUT_STEADY)
def test_k2_takes_no_more_instructions_than_mq_deadline() -> None:
    bench("instructions")


@by_night
@pytest.mark.reads(*WITHOUT_STEADY)
@pytest.mark.parametrize("name", OF_MODULES)
def test_a_benchmark_of_modules_works(name: str) -> None:
    bench(name)


@by_night
@pytest.mark.reads(*SOURCES)
def test_the_benchmark_of_spans_works() -> None:
    bench("spans")


@by_night
@pytest.mark.parametrize("name", OF_THIS_KERNEL)
def test_a_benchmark_of_this_kernel_works(name: str) -> None:
    bench(name)
