# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the kernel needs of the host to run as a program: see lab/host/*.c."""

import fcntl
import subprocess
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT

PRELOAD_SOURCES = sorted((PROJECT / "lab" / "host").glob("*.c"))


def build_preload() -> Path:
    """Build the library to preload into the kernel, unless it is there; returns its path."""
    folder = BUILD / "host"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "preload.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest_s = max(source.stat().st_mtime for source in PRELOAD_SOURCES)
        if not library.is_file() or library.stat().st_mtime < newest_s:
            _compile(library)
    return library


def _compile(library: Path) -> None:
    unfinished = library.with_suffix(".new")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(unfinished)]
    done = subprocess.run(
        ["gcc", *flags, *map(str, PRELOAD_SOURCES)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"building {library.name} failed:\n{done.stderr[-2000:]}")
    unfinished.replace(library)
