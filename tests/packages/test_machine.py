# SPDX-License-Identifier: MIT OR Apache-2.0
"""How machine.py reads its guest's serial line."""

from __future__ import annotations

import subprocess
from pathlib import Path

from machine import Machine


def test_the_agents_line_is_found_behind_the_end_of_a_colour(work: Path) -> None:
    machine = Machine(work / "disk.img", work)
    printed = r"\033[1mbold\n\033[0magent: status 3\nmore"
    machine._guest = subprocess.Popen(["printf", printed], stdout=subprocess.PIPE)
    output, status = machine._read_until(r"agent: status (\d+)\n", 60)
    assert (output, status) == ("\033[1mbold\n", "3")
