# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library that is preloaded into the kernel's process: see lab/host/*.c."""

import fcntl
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.compiler import compile_inside

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
            flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            compile_inside(PRELOAD_SOURCES, library, flags)
    return library
