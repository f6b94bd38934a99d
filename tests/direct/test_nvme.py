# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of a namespace through the character device of an emulated SSD, in the guest."""

from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

DRIVE = PROJECT / "experiments" / "devices" / "test-nvme.toml"


@pytest.mark.parametrize("release", RELEASES)
def test_a_part_of_a_namespace_is_all_that_is_reached(release: str, work: Path) -> None:
    environment = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
    }
    command = ["sh", f"{GUEST_PROJECT}/tests/direct/nvme.sh"]
    result = uml(release).boot(BootRequest(command, work, device=DRIVE, environment=environment))
    print(result.output)
    assert result.exit_status == 0 and "all done" in result.output, result.output[-3000:]
