# SPDX-License-Identifier: MIT OR Apache-2.0
"""A store on `/dev/chardiskN`, in the guest."""

from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "test-plain.toml"


@pytest.mark.parametrize("release", RELEASES)
def test_a_store_lives_on_a_character_device(release: str, work: Path) -> None:
    environment = {
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
    }
    command = ["sh", f"{GUEST_PROJECT}/tests/store/on_chardisk.sh"]
    request = BootRequest(command, work, device=CARD, environment=environment, modules=["chario"])
    result = uml(release).boot(request)
    print(result.output)
    assert result.exit_status == 0 and "all done" in result.output, result.output[-3000:]
