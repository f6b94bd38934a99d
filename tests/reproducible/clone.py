# SPDX-License-Identifier: MIT OR Apache-2.0
"""A copy of the clone, and the finished parts of the cache, for another system or user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from steady_lab.devices.kinds import MODULES
from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT, cache_dir

CACHE_PARTS = ("roots", "kernels", "src")


def need_root(command: str) -> None:
    """Raise LabError unless this is root, who alone can set up another system or user."""
    if os.getuid() != 0:
        raise LabError(f"`other_systems {command}` needs root: run it with sudo")
    if not shutil.which("bwrap"):
        raise LabError("bwrap is missing: run make setup")


def copy_clone(folder: Path) -> None:
    """Put the committed files into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=PROJECT, capture_output=True)
    if archive.returncode != 0:
        raise LabError(f"git archive failed: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive.stdout, check=True)


def copy_steady(clone: Path) -> None:
    """Give a copied clone the program that measures as it was built here."""
    (clone / "build" / "bin").mkdir(parents=True)
    shutil.copy2(BUILD / "bin" / "steady-guest", clone / "build" / "bin")


def cache_places(inside: str) -> list[str]:
    """Words for bwrap: the cache's roots, kernels and sources, read-only, below `inside`."""
    parts = ((cache_dir() / part, f"{inside}/{part}") for part in CACHE_PARTS)
    binds = [word for host, place in parts for word in ("--ro-bind", str(host), place)]
    return ["--perms", "0755", "--dir", inside, *binds]


def modules_and_preload(clone: Path) -> list[Path]:
    """What a run in a copied clone has rebuilt."""
    modules = [path for module in MODULES for path in clone.rglob(f"build/**/{module.name}.ko")]
    return [*modules, clone / "build" / "host" / "preload.so"]
