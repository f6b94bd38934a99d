# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 on Debian's own 6.12 with three CPUs; `make test-stock` runs all of it, on 6.1 as well."""

from pathlib import Path

import guest
import pytest

HERE = Path(__file__).parent


@guest.needs_qemu
@pytest.mark.parametrize("script", ["data_under_load", "changes_under_load"])
def test_data_is_right_on_virtio_and_nvme(script: str, work: Path) -> None:
    result = guest.run(HERE / f"{script}.sh", "6.12", work, ["virtio", "nvme"])
    assert result.exit_status == 0, result.output


@guest.needs_qemu
def test_huge_pages_are_taken(work: Path) -> None:
    result = guest.run(HERE / "huge_pages.sh", "6.12", work, ["virtio"])
    assert result.exit_status == 0, result.output


@guest.needs_qemu
def test_recorder_tracer_and_bench_count_right(work: Path) -> None:
    result = guest.run(HERE / "programs.sh", "6.12", work, ["virtio"], ["ext4"])
    assert result.exit_status == 0, result.output
    guest.assert_programs_counted_right(work)
