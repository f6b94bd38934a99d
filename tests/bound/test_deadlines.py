# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guides/deadlines.md, from top to bottom, on an emulated card."""

import re
from pathlib import Path

import pytest
from kernel_scripts import build_helpers, helpers_folder
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

DEVICES = PROJECT / "experiments" / "devices"
# Without a queue, with one, and another maker's.
CARDS = ("foresee-ncemad9d-usb", "foresee-ncemad9d-cqe", "s5-zynq-emmc-32gb")
GUIDE = PROJECT / "docs" / "guides" / "deadlines.md"


@pytest.mark.parametrize("card", CARDS)
def test_the_commands_of_the_guide_set_a_card_up_for_deadlines_that_hold(
    card: str, work: Path
) -> None:
    build_helpers()
    commands = re.findall(r"^```sh\n(.*?)\n```$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 6
    (work / "commands").write_text("\n".join(commands) + "\n", encoding="utf-8")
    (work / "card.img").touch()
    script = f"{GUEST_PROJECT}/tests/bound/deadlines.sh"
    request = BootRequest(
        ["sh", script],
        work,
        DEVICES / f"{card}.toml",
        environment={
            "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/{helpers_folder().relative_to(PROJECT)}"
        },
        card_image="card.img",
    )
    result = uml().boot(request)
    assert result.exit_status == 0, result.output
    longest_ns, bound_ns = map(
        int, re.findall(r"^joints: (\d+) ns of (\d+)$", result.output, re.MULTILINE)[0]
    )
    assert bound_ns / 5 < longest_ns <= bound_ns
    # Before it reads, dd writes back what the file system has changed there.
    assert re.search(r"^\S+Z mmcblk0 .*rt0 [5-9] ", result.output, re.MULTILINE), result.output
