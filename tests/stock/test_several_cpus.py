# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 on Debian's own 6.12 with three CPUs; `make test-stock` runs more, on 6.1 as well."""

from pathlib import Path

import guest
import pytest
from shared_boot import Machine, Run
from verdicts import SOURCES, WITHOUT_STEADY

HERE = Path(__file__).parent
DATA = Machine(
    "data",
    (Run(HERE / "data_under_load.sh", "nvme"), Run(HERE / "changes_under_load.sh", "virtio")),
    ("virtio", "nvme"),
    ("ext4",),
)
COUNTED = Run(HERE / "programs.sh", "virtio")
PROGRAMS = Machine(
    "programs", (Run(HERE / "huge_pages.sh", "virtio"), COUNTED), ("virtio",), ("ext4",)
)


@pytest.mark.reads(*WITHOUT_STEADY)
@guest.needs_qemu
def test_data_is_right_under_load_and_while_k2_changes(work: Path) -> None:
    boot(DATA, work)


@pytest.mark.nightly("huge pages, which the lab's kernels lack, or a counter of several CPUs")
@pytest.mark.reads(*SOURCES)
@guest.needs_qemu
def test_huge_pages_are_taken_and_programs_count_right(work: Path) -> None:
    boot(PROGRAMS, work)
    guest.assert_programs_counted_right(work / COUNTED.name)


def boot(machine: Machine, work: Path) -> None:
    failed = [run.name for run, status in machine.boot("6.12", work).items() if status]
    assert not failed, f"{', '.join(failed)}: the output is above"
