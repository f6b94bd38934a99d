# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guides/deadlines.md, from top to bottom, on an emulated card."""

import re
from pathlib import Path

from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
GUIDE = PROJECT / "docs" / "guides" / "deadlines.md"


def test_the_commands_of_the_guide_set_a_card_up_for_deadlines_that_hold(work: Path) -> None:
    commands = re.findall(r"^```sh\n(.*?)\n```$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 6
    (work / "commands").write_text("\n".join(commands) + "\n", encoding="utf-8")
    (work / "card.img").touch()
    script = f"{GUEST_PROJECT}/tests/bound/deadlines.sh"
    result = uml().boot(BootRequest(["sh", script], work, CARD, card_image="card.img"))
    assert result.exit_status == 0, result.output
    assert re.search(r"^\S+Z mmcblk0 .*rt0 5 ", result.output, re.MULTILINE), result.output
