# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 on each of Debian's own kernels, on three CPUs and every kind of disk; `make test-stock`.

The scripts of tests/kernel that need no virtual time say so in their header: `# STOCK: yes`.
"""

from collections.abc import Callable
from pathlib import Path

import guest
import pytest
from shared_boot import Machine, Run
from steady_lab.figures.direct_path import RESERVED_MIB
from steady_lab.kernels.source import RELEASES
from test_kernel import SCRIPTS, header

HERE = Path(__file__).parent
STOCK_SCRIPTS = sorted(path for path in SCRIPTS.glob("*.sh") if header(path).get("STOCK") == "yes")
DATA = ("data_under_load", "changes_under_load")


def runs(disk: str, *names: str) -> tuple[Run, ...]:
    return tuple(Run(HERE / f"{name}.sh", disk) for name in names)


SD = Machine(
    "sd",
    # The first has use for buffers by address, and loads chario without them at its end; the last
    # powers the guest off.
    runs("sd", "by_address", *DATA, "chario_under_load", "reserved_region", "chario_suspend"),
    ("sd",),
    (f"chario memory=512M+{RESERVED_MIB}M",),
    RESERVED_MIB,
)
# QEMU itself ends when its eMMC is suspended.
EMMC = Machine("emmc", runs("emmc", *DATA, "chario_under_load"), ("emmc",), ("chario",))
PCI = Machine(
    "pci",
    (
        *runs("virtio", *DATA, "programs", "removal_under_load"),
        *runs("nvme", *DATA, "programs", "removal_under_load"),
        *runs("scsi", *DATA, "removal_under_load"),
        *runs("null", *DATA),
    ),
    ("virtio", "nvme", "scsi", "null"),
    ("ext4",),
)


def null(release: str) -> Machine:
    only = runs("", "async_depth") if release == "7.3" else ()
    scripts = (*map(Run, STOCK_SCRIPTS), *runs("", "files_while_switching"), *only)
    return Machine("null", scripts, modules=("null_blk nr_devices=0",))


MACHINES = [
    pytest.param(machine, release, id=f"{machine.name}-{release}")
    for release in RELEASES
    for machine in (SD, PCI, EMMC, null(release))
]


@pytest.mark.parametrize(("machine", "release"), MACHINES)
def test_each_script_passes(
    machine: Machine,
    release: str,
    work: Path,
    record_property: Callable[[str, object], None],
) -> None:
    passed: set[Run] = set()
    try:
        for run, status in machine.boot(release, work).items():
            if status == 0 and run.script.stem == "programs":
                guest.assert_programs_counted_right(work / run.name)
            if status == 0:
                passed.add(run)
    finally:
        # What tested.py makes cells of.
        record_property("release", release)
        for run in machine.runs:
            record_property(f"cell {run.name}", "passed" if run in passed else "failed")
    failed = [run.name for run in machine.runs if run not in passed]
    assert not failed, f"{', '.join(failed)}: the output is above"
