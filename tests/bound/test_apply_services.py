# SPDX-License-Identifier: MIT OR Apache-2.0
"""udev and systemd of Debian 12 act on what `steady apply` writes, on its own kernel."""

import subprocess
import sys
from pathlib import Path

import pytest
from steady_lab.paths import PROJECT
from steady_lab.root.root import services_root

sys.path.insert(0, str(PROJECT / "tests" / "stock"))
import guest
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

HERE = Path(__file__).parent


@pytest.mark.nightly("what udev and systemd make of files that are as test_apply.py wants them")
@guest.needs_qemu
def test_a_disk_and_a_service_are_set_up_by_the_system(work: Path) -> None:
    archive = work / "services.tar"
    subprocess.run(["tar", "-cf", archive, "-C", services_root().path, "."], check=True)
    result = guest.run(HERE / "services.sh", "6.12", work, ["virtio"])
    assert result.exit_status == 0, result.output
