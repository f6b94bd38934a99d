# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python package as pip installs it: built once for all tests that use it."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path
from typing import Any

from steady_lab.paths import BUILD, PROJECT

ENVIRONMENT = BUILD / "tests" / "python"
RING_BYTES = 64 << 10


def install(testrun: str) -> Path:
    """Make the environment unless another worker of this run has; the folder of its packages."""
    ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    made = ENVIRONMENT.with_suffix(".made")
    with ENVIRONMENT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = made.read_text().split("\n") if made.exists() else [""]
        if known[0] != testrun:
            command = [str(PROJECT / "scripts" / "python-package"), "--debug", str(ENVIRONMENT)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            known = [testrun, done.stdout.strip()]
            made.write_text("\n".join(known))
    return Path(known[1])


def options(**more: Any) -> dict[str, Any]:
    """A small pool that an ordinary user may make, too."""
    small = {"segment_bytes": 512 << 10, "unit_bytes": 16 << 10, "segments": 3}
    return {**small, "lock_memory": False, "loss_window_s": 0.1, **more}
