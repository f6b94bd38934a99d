# SPDX-License-Identifier: MIT OR Apache-2.0
"""The comparison with blktrace still works; no time on a real clock is judged."""

import pytest
from test_benchmarks import bench

pytestmark = pytest.mark.waits_for_cargo


def test_the_comparison_with_blktrace_works() -> None:
    bench("trace-agreement")
