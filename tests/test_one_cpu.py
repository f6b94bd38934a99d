# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which CPU of this machine a guest of User Mode Linux gets."""

import os
import subprocess
from pathlib import Path

import pytest
from steady_lab.targets import one_cpu as module
from steady_lab.targets.one_cpu import one_cpu

SHOW = ["python3", "-c", "import os; print(*os.sched_getaffinity(0))"]


@pytest.fixture
def cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Two CPUs of this machine, or the only one, that no guest of another test has."""
    allowed = set(sorted(os.sched_getaffinity(0))[:2])
    for cpu in allowed:
        (tmp_path / f"cpu{cpu}").mkdir()
    monkeypatch.setattr(module, "CPUS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    return allowed


def cpus_of(words: list[str]) -> set[int]:
    shown = subprocess.run([*words, *SHOW], capture_output=True, text=True, check=True)
    return {int(word) for word in shown.stdout.split()}


def test_a_guest_gets_one_cpu(cpus: set[int]) -> None:
    with one_cpu() as words:
        found = cpus_of(words)
    assert len(found) == 1 and found <= cpus


def test_guests_get_different_cpus_while_there_are_any(cpus: set[int]) -> None:
    with one_cpu() as first, one_cpu() as second:
        assert cpus_of(first) | cpus_of(second) == cpus
        with one_cpu() as third:
            assert cpus_of(third) <= cpus


def test_the_cpu_of_a_guest_that_has_ended_is_free(cpus: set[int]) -> None:
    with one_cpu() as words:
        before = words
    with one_cpu() as after:
        assert after == before


def test_a_machine_without_sysfs_gets_one_cpu_too(
    cpus: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CPUS", tmp_path / "none")
    with one_cpu() as words:
        assert cpus_of(words) <= cpus
