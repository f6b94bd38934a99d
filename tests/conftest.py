# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all tests share: lab kernels, and a fresh work folder below build/tests."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.source import find_source
from steady_lab.paths import BUILD

# A shell starts background jobs with SIGINT ignored, and so would be every program started here;
# tests that press Ctrl-C need it as it is in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes, or making it, says something about the machine only. The examples are
# the same each time: a test fails because of the change under test.
settings.register_profile(
    "steadyio",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steadyio")


@pytest.fixture(scope="session")
def base_kernel() -> LabKernel:
    return build_kernel(find_source(), "base")


@pytest.fixture(scope="session")
def debug_kernel() -> LabKernel:
    return build_kernel(find_source(), "debug")


@pytest.fixture
def work(request: pytest.FixtureRequest) -> Path:
    """An empty folder named after the test; kept afterwards, to look at."""
    folder = BUILD / "tests" / "work" / re.sub(r"[^\w.-]+", "_", request.node.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tell scripts/test of a skipped test, once: not in a worker of xdist."""
    skips = os.environ.get("STEADYIO_SKIPS")
    if not report.skipped or not skips or "PYTEST_XDIST_WORKER" in os.environ:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    with Path(skips).open("a", encoding="utf-8") as file:
        file.write(f"{report.nodeid}\t{reason.removeprefix('Skipped: ')}\n")
