# SPDX-License-Identifier: MIT OR Apache-2.0
"""What QEMU as a target refuses, before anything is built; what it runs is in tests/stock."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.kernels.stock import StockKernel
from steady_lab.targets.qemu import PROGRAM, Qemu
from steady_lab.targets.qemu_standstill import STANDSTILL, Standstill
from steady_lab.targets.target import BootError, BootRequest

AMD64 = StockKernel(Path("tree"), Path("source"), "6.12", "6.12.0", "key")
ARM64 = StockKernel(Path("tree"), Path("source"), "6.12", "6.12.0", "key", "arm64")


@pytest.mark.parametrize("disk", ["emmc", "ufs"])
def test_a_disk_of_the_newer_qemu_is_refused_on_arm(disk: str) -> None:
    with pytest.raises(BootError, match=rf"disk {disk}: only qemu-system-x86_64 has it"):
        Qemu(ARM64, disks=("sd", disk))


def test_time_of_an_instruction_that_qemu_cannot_take_is_refused() -> None:
    with pytest.raises(BootError, match=r"an instruction of 3 ns: QEMU knows 1, 2, 4, "):
        Qemu(AMD64, instruction_ns=3)


@pytest.mark.parametrize(
    ("device", "disks", "expected"),
    [
        ("test-nvme", (), "the emulated nvme needs User Mode Linux"),
        ("test-plain", ("virtio",), "test-plain and disks: one or the other"),
    ],
)
def test_an_emulated_device_that_qemu_cannot_have_is_refused(
    device: str, disks: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    request = BootRequest(["true"], tmp_path, device=EXPERIMENTS / "devices" / f"{device}.toml")
    with pytest.raises(BootError, match=expected):
        Qemu(AMD64, disks=disks).boot(request)


def test_reserved_memory_is_refused_on_arm() -> None:
    with pytest.raises(BootError, match=r"64 MiB reserved: a kernel for arm64"):
        Qemu(ARM64, reserved_mib=64)


@pytest.mark.skipif(not shutil.which(PROGRAM), reason=f"{PROGRAM} is not installed")
def test_a_guest_that_qemu_does_not_run_is_ended_with_its_registers(tmp_path: Path) -> None:
    folder = tmp_path / "monitor"
    folder.mkdir()
    standstill = Standstill(folder, cpus=1, still_s_max=3)
    never_started = [PROGRAM, "-S", "-nodefaults", "-display", "none", *standstill.arguments()]
    with subprocess.Popen(never_started) as process:
        try:
            with pytest.raises(BootError, match=STANDSTILL):
                while process.poll() is None:
                    standstill.look(process.pid)
                    time.sleep(0.1)
        finally:
            process.kill()
    report = (tmp_path / Standstill.REPORT).read_text(encoding="utf-8")
    assert "dumping local APIC state for CPU 0" in report
    assert "EIP=" in report
