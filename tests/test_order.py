# SPDX-License-Identifier: MIT OR Apache-2.0
"""In which order the tests of a session run."""

import subprocess
import sys

from steady_lab.paths import PROJECT

WAITS, OTHERS = (
    "tests/bench/test_python_append.py",
    ("tests/test_locks.py", "tests/test_progress.py"),
)


def test_what_waits_for_cargo_runs_last() -> None:
    words = [sys.executable, "-m", "pytest", "-c", "lab/pyproject.toml", "--rootdir", "."]
    words += ["--collect-only", "-q", WAITS, *OTHERS]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True)
    files = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    assert {*files} == {WAITS, *OTHERS}
    assert files[-1] == WAITS and files.count(WAITS) == 1
