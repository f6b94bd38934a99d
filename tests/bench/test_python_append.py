# SPDX-License-Identifier: MIT OR Apache-2.0
"""The benchmark of the Python package still works; no time on a real clock is judged."""

import crates
import pytest
from test_benchmarks import bench
from verdicts import WITHOUT_STEADY

pytestmark = [
    pytest.mark.waits_for_cargo,
    pytest.mark.reads(*WITHOUT_STEADY, *crates.decide("steadyio-python")),
]


def test_the_benchmark_of_the_python_package_works() -> None:
    bench("python")
