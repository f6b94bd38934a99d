# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tree that the series is made for, and the series."""

import subprocess
import sys
from pathlib import Path

import pytest
from steady_lab.kernels.source import find_source
from steady_lab.paths import PROJECT

SERIES = PROJECT / "kernel" / "upstream" / "series.py"
RELEASE = "7.3"
SIGNER = "A Tester <tester@example.org>"


def signed_off(patch: pytest.MonkeyPatch) -> None:
    """Give git a name, whatever this machine's git has."""
    name, address = SIGNER.removesuffix(">").split(" <")
    for number, (key, value) in enumerate((("user.name", name), ("user.email", address))):
        patch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        patch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    patch.setenv("GIT_CONFIG_COUNT", "2")


def source_tree() -> Path:
    """The release's source, unpacked into the cache."""
    return find_source(release=RELEASE).tree


def make_series(tree: Path, out: Path) -> list[Path]:
    """The cover letter and the patches."""
    done = run([sys.executable, str(SERIES), str(tree), str(out)])
    return [Path(line) for line in done.splitlines()]


def run(command: list[str], folder: Path = PROJECT) -> str:
    """Run a command; returns what it printed, and fails the test if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout
