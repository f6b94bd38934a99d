# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2, chario and the programs on Debian's own kernel for 64-bit ARM, three CPUs; `make test-stock`.

Programs of 32 bits run on it, too.

Fewer cells than x86-64 has (stock_kernels.py): an emulated boot of it takes twice as long.
"""

from collections.abc import Callable
from pathlib import Path

import guest
import pytest
from steady_lab.kernels.stock import ARM64_KERNELS, stock_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.root.cargo import RUST_TARGETS, build_steady_for

HERE = Path(__file__).parent
PCI_DISKS = ("virtio", "nvme")
DISKS = (*PCI_DISKS, "sd")
# On two busy cores a boot was seen to take four minutes.
TIMEOUT_S = 3600

each_kernel = pytest.mark.parametrize("kernel", ARM64_KERNELS)


@pytest.fixture(autouse=True)
def cell(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """What tested.py makes a cell of."""
    for name, value in request.node.callspec.params.items():
        record_property(name, value)


def passes(script: str, kernel: str, work: Path, disk: str, modules: tuple[str, ...] = ()) -> None:
    result = guest.run(HERE / f"{script}.sh", kernel, work, [disk], modules, timeout_s=TIMEOUT_S)
    assert result.exit_status == 0, result.output


@each_kernel
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("script", ["data_under_load", "changes_under_load"])
def test_data_is_right(script: str, disk: str, kernel: str, work: Path) -> None:
    passes(script, kernel, work, disk)


@each_kernel
@pytest.mark.parametrize("disk", PCI_DISKS)
def test_a_disk_can_vanish_under_load(disk: str, kernel: str, work: Path) -> None:
    passes("removal_under_load", kernel, work, disk)


@each_kernel
@pytest.mark.parametrize("script", ["chario_under_load"])
def test_a_card_as_a_character_device(script: str, kernel: str, work: Path) -> None:
    passes(script, kernel, work, "sd", ("chario",))


@each_kernel
@pytest.mark.parametrize("disk", ["virtio"])
@pytest.mark.parametrize("programs", RUST_TARGETS)
def test_recorder_tracer_and_bench_count_right(
    programs: str, disk: str, kernel: str, work: Path
) -> None:
    steady = build_steady_for(programs).relative_to(PROJECT)
    environment = {"STEADY": f"{GUEST_PROJECT}/{steady}"}
    script, modules = HERE / "programs.sh", ["ext4"]
    result = guest.run_on(
        stock_kernel(kernel), script, work, [disk], modules, environment, timeout_s=TIMEOUT_S
    )
    assert result.exit_status == 0, result.output
    guest.assert_programs_counted_right(work)
