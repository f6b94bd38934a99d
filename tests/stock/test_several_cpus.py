# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 on Debian's own 6.12 with three CPUs; `make test-stock` runs all of it, on 6.1 as well."""

from pathlib import Path

import guest
import pytest
from shared_boot import Machine, Run
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

HERE = Path(__file__).parent
PROGRAMS = Run(HERE / "programs.sh", "virtio")
MACHINE = Machine(
    "several-cpus",
    (
        Run(HERE / "data_under_load.sh", "nvme"),
        Run(HERE / "changes_under_load.sh", "virtio"),
        Run(HERE / "huge_pages.sh", "virtio"),
        PROGRAMS,
    ),
    ("virtio", "nvme"),
    ("ext4",),
)


@guest.needs_qemu
def test_data_is_right_huge_pages_are_taken_and_programs_count_right(work: Path) -> None:
    failed = [run.name for run, status in MACHINE.boot("6.12", work).items() if status]
    assert not failed, f"{', '.join(failed)}: the output is above"
    guest.assert_programs_counted_right(work / PROGRAMS.name)
