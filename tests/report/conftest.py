# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report made from real boots of the tiny figure, kept below build/tests between runs."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from steady_lab.kernel_build import LabKernel
from steady_lab.paths import BUILD, PROJECT

TINY = PROJECT / "tests" / "figures" / "tiny.toml"
RUN_TIMEOUT_S = 300


Command = Callable[..., str]


def run_steady_lab(*arguments: str) -> str:
    """Run steady-lab and return its output; its failure fails the test."""
    done = subprocess.run(
        [sys.executable, "-m", "steady_lab.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def steady_lab() -> Command:
    return run_steady_lab


@pytest.fixture(scope="session")
def tiny_build(base_kernel: LabKernel) -> Path:
    """The build folder with the tiny figure's results and report; one worker makes it."""
    build = BUILD / "tests" / "report"
    build.mkdir(parents=True, exist_ok=True)
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_steady_lab("run", str(TINY), "--build", str(build))
        run_steady_lab("report", "--build", str(build))
    return build
