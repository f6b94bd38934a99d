# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library that is preloaded into the kernel's process: see lab/host/*.c."""

import fcntl
import hashlib
import shutil
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.root.given import PRELOAD, given, part
from steady_lab.root.root import build_root_key

PRELOAD_SOURCES = sorted((PROJECT / "lab" / "host").glob("*.c"))
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
LIBRARY = "preload.so"


def build_preload() -> Path:
    """Build the library to preload into the kernel, unless it is there; returns its path."""
    folder = BUILD / "host"
    folder.mkdir(parents=True, exist_ok=True)
    library, stamp = folder / LIBRARY, folder / "stamp"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = preload_part()
        if library.is_file() and stamp.is_file() and stamp.read_text() == name:
            return library
        prebuilt = given(name, LIBRARY)
        if prebuilt.is_file():
            shutil.copyfile(prebuilt, library)
        else:
            compile_inside(PRELOAD_SOURCES, library, FLAGS)
        stamp.write_text(name)
    return library


def preload_part() -> str:
    """Return the name of the compiled library (given.py)."""
    digest = hashlib.sha256(f"{build_root_key()}{FLAGS}".encode())
    for source in PRELOAD_SOURCES:
        digest.update(f"{source.name}\0".encode() + source.read_bytes())
    return part(PRELOAD, digest.hexdigest())
