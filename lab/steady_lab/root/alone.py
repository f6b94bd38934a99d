# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages that are unpacked without their dependencies, and kept in the cache."""

import fcntl
import hashlib
import json
import shutil
from dataclasses import astuple
from pathlib import Path

from steady_lab.paths import cache_dir
from steady_lab.root.apt import fetch
from steady_lab.root.lock import PROMETHEUS, locked_packages
from steady_lab.root.root import guest_root, unpack_package
from steady_lab.root.sandbox import Place, build_sandbox

INSIDE_PROMETHEUS = "/run/steadyio/prometheus"


def unpacked(purpose: str, name: str) -> Path:
    """Return the cache's folder `name` with the packages of a purpose; raises LabError."""
    packages = locked_packages(purpose)
    key = hashlib.sha256(json.dumps([astuple(package) for package in packages]).encode())
    folder = cache_dir() / name / key.hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            for file in fetch(packages):
                unpack_package(file, partial)
            partial.rename(folder)
    return folder


def prometheus(program: str, places: list[Place], network: bool = False) -> list[str]:
    """Return the command that runs `prometheus` or `promtool` in the guests' root; /tmp is empty.

    `places`: what it sees of the host's files.
    """
    tree = Place(unpacked(PROMETHEUS, "prometheus"), INSIDE_PROMETHEUS)
    inside = build_sandbox(guest_root().path, [tree, *places], network=network)
    return [*inside, f"{INSIDE_PROMETHEUS}/usr/bin/{program}"]
