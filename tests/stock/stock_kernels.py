# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 on each of Debian's own kernels, on three CPUs and every kind of disk; `make test-stock`.

The scripts of tests/kernel that need no virtual time say so in their header: `# STOCK: yes`.
"""

from collections.abc import Callable
from pathlib import Path

import guest
import pytest
from steady_lab.figures.direct_path import RESERVED_MIB
from steady_lab.kernels.source import RELEASES
from test_kernel import SCRIPTS, header

HERE = Path(__file__).parent
DISKS = ("virtio", "scsi", "nvme", "sd", "emmc", "null")
PCI_DISKS = ("virtio", "scsi", "nvme")
STOCK_SCRIPTS = sorted(path for path in SCRIPTS.glob("*.sh") if header(path).get("STOCK") == "yes")


@pytest.fixture(autouse=True)
def cell(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """What tested.py makes a cell of."""
    for name, value in request.node.callspec.params.items():
        record_property(name, value.stem if isinstance(value, Path) else value)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("script", ["data_under_load", "changes_under_load"])
def test_data_is_right(script: str, disk: str, release: str, work: Path) -> None:
    result = guest.run(HERE / f"{script}.sh", release, work, [disk])
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("disk", PCI_DISKS)
def test_a_disk_can_vanish_under_load(disk: str, release: str, work: Path) -> None:
    result = guest.run(HERE / "removal_under_load.sh", release, work, [disk])
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("script", "disk"),
    # QEMU itself ends when its eMMC is suspended.
    [("chario_under_load", "sd"), ("chario_under_load", "emmc"), ("chario_suspend", "sd")],
)
def test_a_card_as_a_character_device(script: str, disk: str, release: str, work: Path) -> None:
    result = guest.run(HERE / f"{script}.sh", release, work, [disk], ["chario"])
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
def test_buffers_in_a_reserved_region(release: str, work: Path) -> None:
    script = HERE / "reserved_region.sh"
    result = guest.run(script, release, work, ["sd"], ["chario"], RESERVED_MIB)
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
def test_buffers_by_address(release: str, work: Path) -> None:
    modules = [f"chario memory=512M+{RESERVED_MIB}M"]
    result = guest.run(HERE / "by_address.sh", release, work, ["sd"], modules, RESERVED_MIB)
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("disk", ("virtio", "nvme"))
def test_recorder_tracer_and_bench_count_right(disk: str, release: str, work: Path) -> None:
    result = guest.run(HERE / "programs.sh", release, work, [disk], ["ext4"])
    assert result.exit_status == 0, result.output
    guest.assert_programs_counted_right(work)


@pytest.mark.parametrize("release", RELEASES)
def test_files_can_be_read_while_the_scheduler_changes(release: str, work: Path) -> None:
    modules = ["null_blk nr_devices=0"]
    result = guest.run(HERE / "files_while_switching.sh", release, work, modules=modules)
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", ["7.3"])
def test_async_depth_limits_background(release: str, work: Path) -> None:
    modules = ["null_blk nr_devices=0"]
    result = guest.run(HERE / "async_depth.sh", release, work, modules=modules)
    assert result.exit_status == 0, result.output


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("script", STOCK_SCRIPTS, ids=lambda path: path.stem)
def test_as_on_the_lab_kernel(script: Path, release: str, work: Path) -> None:
    modules = header(script).get("MODULES", "").split(";")
    result = guest.run(script, release, work, modules=list(filter(None, modules)))
    assert result.exit_status == 0, result.output
