# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run a script of tests/stock or tests/kernel on a stock kernel under QEMU, on three CPUs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.qemu import PROGRAM, qemu
from steady_lab.targets.target import BootRequest, BootResult

sys.path.insert(0, str(PROJECT / "tests"))
from test_kernel import build_helpers

CPUS = 3
# How long it takes says something about this machine only; this ends what hangs.
TIMEOUT_S = 900

needs_qemu = pytest.mark.skipif(not shutil.which(PROGRAM), reason=f"{PROGRAM} is not installed")


# I/Os of each process. The emulated SD card takes several ms for each.
IOS, IOS_SD = 150, 30


def run(
    script: Path, release: str, work: Path, disks: Sequence[str] = (), modules: Sequence[str] = ()
) -> BootResult:
    build_helpers()
    environment = {
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
        "STEADY_STOCK": f"{GUEST_PROJECT}/tests/stock",
        "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
        "STEADY_KERNEL": release,
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_IOS": str(IOS_SD if "sd" in disks else IOS),
    }
    command = ["sh", f"{GUEST_PROJECT}/{script.relative_to(PROJECT)}"]
    request = BootRequest(
        command, work, modules=modules, environment=environment, timeout_s=TIMEOUT_S
    )
    result = qemu(release, CPUS, disks).boot(request)
    print(result.output)
    return result
