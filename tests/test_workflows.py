# SPDX-License-Identifier: MIT OR Apache-2.0
"""CI, nightly runs and the container file agree on the system; each part of the soak runs."""

from __future__ import annotations

import re
import subprocess

import pytest
from steady_lab.paths import PROJECT

CONTAINER = (PROJECT / ".ci/Containerfile").read_text(encoding="utf-8")
WORKFLOWS = {path.stem: path.read_text("utf-8") for path in PROJECT.glob(".github/workflows/*.yml")}


def found(pattern: str, text: str) -> set[str]:
    return set(re.findall(pattern, text, re.MULTILINE))


@pytest.mark.parametrize("name", ["ci", "nightly"])
def test_a_workflow_runs_in_the_system_of_the_container_file(name: str) -> None:
    text = WORKFLOWS[name]
    assert found(r"^ +image: (.*)$", text) == found(r"^FROM (.*)$", CONTAINER)
    assert found(r"^  PACKAGES: (.*)$", text) == found(r"--no-install-recommends (.*)$", CONTAINER)


def test_each_part_of_the_soak_runs_in_one_nightly_job() -> None:
    command = [str(PROJECT / "scripts/soak"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    parts = [line.split()[0] for line in listed.splitlines()]
    jobs = re.findall(r"run: scripts/soak (.*) }$", WORKFLOWS["nightly"], re.MULTILINE)
    assert sorted(" ".join(jobs).split()) == sorted(parts)
