# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things are: the clone, its build folder, the cache that outlives clones; the guest's.

Installed from a wheel, the lab has a tree in the cache for a clone.
"""

import os
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.tree import ARCHIVE, unpacked


def cache_dir() -> Path:
    """Folder for kernels and unpacked sources: $STEADYIO_CACHE, else the XDG cache folder."""
    chosen = os.environ.get("STEADYIO_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache") / "steadyio"
    except RuntimeError as error:
        raise LabError("no home directory for the cache: set STEADYIO_CACHE") from error


if ARCHIVE.is_file():
    PROJECT, COMMAND = unpacked(ARCHIVE, cache_dir() / "tree"), "steady-lab"
else:
    PROJECT, COMMAND = Path(__file__).resolve().parents[2], "build/bin/steady-lab"
BUILD = PROJECT / "build"
KERNEL_CONFIGS = PROJECT / "lab" / "kernel"
# Where a guest finds its work folder, the clone and the kernel's objects; builds find the latter,
# the kernel's source and a module's there, too.
GUEST_WORK = "/run/steadyio/work"
GUEST_PROJECT = "/run/steadyio/project"
GUEST_KERNEL = "/run/steadyio/kernel"
INSIDE_SOURCE = "/run/steadyio/source"
INSIDE_MODULE = "/run/steadyio/module"
