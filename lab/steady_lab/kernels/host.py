# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the kernel needs of the host to run as a program: see lab/host/xstate.c."""

import fcntl
import subprocess
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT

SOURCE = PROJECT / "lab" / "host" / "xstate.c"


def build_preload() -> Path:
    """Build the library to preload into the kernel, unless it is there; returns its path."""
    folder = BUILD / "host"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "xstate.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.is_file() or library.stat().st_mtime < SOURCE.stat().st_mtime:
            _compile(library)
    return library


def _compile(library: Path) -> None:
    unfinished = library.with_suffix(".new")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    done = subprocess.run(
        ["gcc", *flags, "-o", str(unfinished), str(SOURCE)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise LabError(f"building {library.name} failed:\n{done.stderr[-2000:]}")
    unfinished.replace(library)
