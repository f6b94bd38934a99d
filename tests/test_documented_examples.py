# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples in the documents print what the documents show, but for numbers.

An example is a block with `$` before each command. It needs a board, and does not run here, if it
names a device, a recorder's socket or a recording of the reader's. A document may show only the
beginning.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from rust_examples import rust_example
from steady_lab.paths import BUILD, PROJECT

pytestmark = pytest.mark.reads("docs", "device", "experiments")

BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_A_BOARD = re.compile(r"/dev/(?!zero)|/run/|/data/")
# What differs between two runs: identifiers, checksums and numbers.
CHANGES = ((re.compile(r"\b[0-9a-f]{8,}\b"), "id"), (re.compile(r"\d+(?:[.,]\d+)*"), "0"))
TIMEOUT_S = 120


def examples() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each block's document and its commands, each with the output below it."""
    found = []
    for path in sorted((PROJECT / "docs").rglob("*.md")):
        for block in BLOCK.findall(path.read_text(encoding="utf-8")):
            parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
            commands = list(zip(parts[::2], parts[1::2], strict=True))
            found.append((path.stem, commands))
    return found


EXAMPLES = [one for one in examples() if not any(NEEDS_A_BOARD.search(c) for c, _ in one[1])]


def case(page: str, commands: list[tuple[str, str]]) -> ParameterSet:
    """Return a parameter of the test; one that builds an example comes when cargo is free."""
    builds = any("cargo run" in command for command, _ in commands)
    marks = [pytest.mark.waits_for_cargo] if builds else []
    return pytest.param(commands, id=page, marks=marks)


def shape(text: str) -> list[str]:
    """Return the words of each line, with the same number for all numbers."""
    for pattern, instead in CHANGES:
        text = pattern.sub(instead, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder in which the paths of the repository exist, too."""
    for name in ("docs", "device", "experiments"):
        (tmp_path / name).symlink_to(PROJECT / name)
    return tmp_path


def run(command: str, folder: Path) -> str:
    """Run a line of an example in a shell; return what it printed."""
    environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: status {done.returncode}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("commands", [case(page, commands) for page, commands in EXAMPLES])
def test_an_example_prints_what_its_document_shows(
    commands: list[tuple[str, str]], folder: Path
) -> None:
    for command, shown in commands:
        if "cargo run" in command:
            command = f"mkdir recordings && {rust_example('segments')} recordings"
        printed = run(command, folder)
        lines = shape(shown)
        assert shape(printed)[: len(lines)] == lines, command


def test_most_examples_need_no_board() -> None:
    assert len(EXAMPLES) >= 9
    assert len(EXAMPLES) > len(examples()) / 2
