# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guide has the commands that `make test-packages` runs in a guest."""

from __future__ import annotations

import subprocess

import guide
import pytest

SECTIONS = ("Install", "Choose k2", "Upgrade", "Remove")


@pytest.mark.parametrize("heading", SECTIONS)
def test_a_section_is_a_script(heading: str) -> None:
    text = guide.commands(heading)
    assert text.count("\n") > 1
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_section_without_commands_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no command below"):
        guide.commands("Tested systems")
