# SPDX-License-Identifier: MIT OR Apache-2.0
"""A store in a part of an NVMe namespace, without the block layer, in the guest."""

from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

DRIVE = PROJECT / "experiments" / "devices" / "test-nvme.toml"


@pytest.mark.parametrize("release", RELEASES)
def test_a_store_lives_in_a_part_of_a_namespace(release: str, work: Path) -> None:
    environment = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
    }
    command = ["sh", f"{GUEST_PROJECT}/tests/store/on_nvme.sh"]
    result = uml(release).boot(BootRequest(command, work, device=DRIVE, environment=environment))
    print(result.output)
    assert result.exit_status == 0 and "all done" in result.output, result.output[-3000:]
