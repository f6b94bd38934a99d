# SPDX-License-Identifier: MIT OR Apache-2.0
"""What QEMU as a target refuses, before anything is built; what it runs is in tests/stock."""

from pathlib import Path

import pytest
from steady_lab.kernels.stock import StockKernel
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootError

ARM64 = StockKernel(Path("tree"), Path("source"), "6.12", "6.12.0", "key", "arm64")


def test_an_emmc_is_refused_on_arm() -> None:
    with pytest.raises(BootError, match=r"disk emmc: only qemu-system-x86_64 has it"):
        Qemu(ARM64, disks=("sd", "emmc"))


def test_reserved_memory_is_refused_on_arm() -> None:
    with pytest.raises(BootError, match=r"64 MiB reserved: a kernel for arm64"):
        Qemu(ARM64, reserved_mib=64)
