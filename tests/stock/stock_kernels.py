# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2, chario and the programs on Debian's own kernels, three CPUs; `make test-stock`.

On x86-64 with every kind of disk, and with the scripts of tests/kernel that need no virtual time,
which say so in their header: `# STOCK: yes`. With PREEMPT_RT the same. On ARM with fewer; on that
of 64 bits programs of 32 bits run, too.
"""

from collections.abc import Callable
from pathlib import Path

import guest
import pytest
from kernel_scripts import SCRIPTS, header
from shared_boot import Machine, Run
from steady_lab.figures.direct_path import RESERVED_MIB
from steady_lab.kernels.source import RELEASES
from steady_lab.kernels.stock import ARM_KERNELS, RT_KERNELS
from steady_lab.root.cargo import RUST_TARGETS

HERE = Path(__file__).parent
STOCK_SCRIPTS = sorted(path for path in SCRIPTS.glob("*.sh") if header(path).get("STOCK") == "yes")
DATA = ("data_under_load", "changes_under_load")


def runs(disk: str, *names: str) -> tuple[Run, ...]:
    return tuple(Run(HERE / f"{name}.sh", disk) for name in names)


def sd(kernel: str) -> Machine:
    # Debian's kernels with PREEMPT_RT have no device-dax.
    dax = () if kernel in RT_KERNELS else ("reserved_region",)
    return Machine(
        "sd",
        # The first has use for buffers by address, and loads chario without them at its end; the
        # last powers the guest off.
        runs("sd", "by_address", *DATA, "chario_under_load", *dax, "chario_suspend"),
        ("sd",),
        (f"chario memory=512M+{RESERVED_MIB}M",),
        RESERVED_MIB,
    )


# QEMU itself ends when its eMMC is suspended.
EMMC = Machine("emmc", runs("emmc", *DATA, "chario_under_load"), ("emmc",), ("chario",))


def ufs(kernel: str) -> Machine:
    # The driver of 6.1 tells the device nothing about priorities.
    only = () if kernel.partition("-")[0] == "6.1" else ("ufs_priority",)
    return Machine("ufs", runs("ufs", *DATA, *only, "removal_under_load"), ("ufs",))


def pci(kernel: str) -> Machine:
    only = ("interrupt_threads",) if kernel in RT_KERNELS else ()
    return Machine(
        "pci",
        (
            *runs("virtio", *DATA, "programs", *only, "removal_under_load"),
            *runs("nvme", *DATA, "programs", "nvme_commands", *only, "removal_under_load"),
            *runs("scsi", *DATA, "removal_under_load"),
            *runs("null", *DATA),
        ),
        ("virtio", "nvme", "scsi", "null"),
        ("ext4",),
    )


def null(kernel: str) -> Machine:
    only = runs("", "async_depth") if kernel.startswith("7.3") else ()
    names = ("files_while_switching", "declared_crypt")
    scripts = (*map(Run, STOCK_SCRIPTS), *runs("", *names), *only)
    return Machine("null", scripts, modules=("null_blk nr_devices=0",))


ARM_SD = Machine("sd", runs("sd", *DATA, "chario_under_load"), ("sd",), ("chario",))


def arm_pci(kernel: str) -> Machine:
    programs = ["armhf"] if kernel.endswith("armhf") else [*RUST_TARGETS]
    return Machine(
        "pci",
        (
            *runs("virtio", *DATA),
            *(Run(HERE / "programs.sh", "virtio", one) for one in programs),
            *runs("virtio", "removal_under_load"),
            *runs("nvme", *DATA, "removal_under_load"),
        ),
        ("virtio", "nvme"),
        ("ext4",),
    )


MACHINES = [
    pytest.param(machine, kernel, id=f"{machine.name}-{kernel}")
    for kernel, machines in (
        *(
            (kernel, (sd(kernel), pci(kernel), EMMC, ufs(kernel), null(kernel)))
            for kernel in (*RELEASES, *RT_KERNELS)
        ),
        *((kernel, (ARM_SD, arm_pci(kernel))) for kernel in ARM_KERNELS),
    )
    for machine in machines
]


@pytest.mark.parametrize(("machine", "kernel"), MACHINES)
def test_each_script_passes(
    machine: Machine,
    kernel: str,
    work: Path,
    record_property: Callable[[str, object], None],
) -> None:
    passed: set[Run] = set()
    try:
        for run, status in machine.boot(kernel, work).items():
            if status == 0 and run.script.stem == "programs":
                guest.assert_programs_counted_right(work / run.name)
                if run.programs:
                    guest.assert_c_recorded(work / run.name)
            if status == 0:
                passed.add(run)
    finally:
        # What tested.py makes cells of.
        record_property("kernel", kernel)
        for run in machine.runs:
            record_property(f"cell {run.name}", "passed" if run in passed else "failed")
    failed = [run.name for run in machine.runs if run not in passed]
    assert not failed, f"{', '.join(failed)}: the output is above"
