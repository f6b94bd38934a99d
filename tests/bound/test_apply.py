# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady apply` on a running system; into an image it is tested in device/cli/tests."""

from pathlib import Path

from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "test-plain.toml"


def test_a_disk_is_set_up_and_taken_back(work: Path) -> None:
    request = BootRequest(["sh", f"{GUEST_PROJECT}/tests/bound/apply.sh"], work, CARD)
    result = uml().boot(request)
    assert result.exit_status == 0, result.output
