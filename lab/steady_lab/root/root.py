# SPDX-License-Identifier: MIT OR Apache-2.0
"""Unpack the lab's roots from their packages, once, and keep them in the cache by key.

Guests run on one, and nothing but what runs in guests is in it; kernels, modules and `steady` are
built in another. Of Debian 13 are a third, for modules of its kernels, and a fourth, with a QEMU
that has eMMC and UFS. For ARM there are two more: what guests run, and what builds it here.

No maintainer script runs: what the lab needs of their work is done here. The same lock gives
the same files everywhere, down to modes and times.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir
from steady_lab.progress import Progress
from steady_lab.root.apt import fetch
from steady_lab.root.lock import (
    BUILD,
    BUILD_13,
    BUILD_ARM,
    EMULATOR_13,
    GUEST,
    GUEST_ARM64,
    GUEST_ARMHF,
    NATIVE,
    SERVICES,
    Package,
    architecture,
    is_of_debian_13,
    locked_packages,
)
from steady_lab.root.sandbox import Place, run_inside

RECIPE_VERSION = 1
# 2026-01-01 00:00:00 UTC: the time of every file.
FILE_TIME_NS = 1_767_225_600_000_000_000
# Debian has one tree of programs and libraries; packages still bring paths from before.
MERGED = ("bin", "sbin", "lib", "lib64")
PLACES = (
    *("dev", "proc", "sys", "tmp", "run", "root", "etc/ssl"),
    *("usr/share/ca-certificates", "usr/local/share/ca-certificates"),
)
LINKS = {"etc/mtab": "../proc/mounts", "usr/bin/awk": "mawk", "usr/bin/cc": "gcc"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "",
    "etc/resolv.conf": "",
}
# What guests of each architecture run on.
GUESTS = {NATIVE: GUEST, "arm64": GUEST_ARM64, "armhf": GUEST_ARMHF}
# Documentation of packages: not needed.
EXCLUDED = ("doc", "info", "lintian", "locale", "man")


@dataclass(frozen=True)
class Root:
    """An unpacked root; `key` stands for its content."""

    path: Path
    key: str


def guest_root(of: str = NATIVE) -> Root:
    """Return what guests run on, made from its packages if need be; raises LabError.

    `of`: the architecture, by Debian's name.
    """
    return _root(GUESTS[of])


def build_root(of: str = NATIVE) -> Root:
    """Return what everything for an architecture is built in, made if need be; raises LabError."""
    return _root(BUILD if of == NATIVE else BUILD_ARM)


def build_root_key() -> str:
    """Return the key of what everything is built in on this machine; it need not be there."""
    return _key(BUILD)


def build_root_13() -> Root:
    """Return what modules for Debian 13's kernels are built in; raises LabError."""
    return _root(BUILD_13)


def emulator_root() -> Root:
    """Return where a newer QEMU lies, made from its packages if need be; raises LabError."""
    return _root(EMULATOR_13)


def services_root() -> Root:
    """Return a system with systemd and udev, made from its packages if need be; raises LabError."""
    return _root(SERVICES)


@functools.cache
def _key(purpose: str) -> str:
    packages = list(map(astuple, locked_packages(purpose)))
    recipe = [RECIPE_VERSION, MERGED, PLACES, LINKS, FILES, EXCLUDED, packages]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()


@functools.cache
def _root(purpose: str) -> Root:
    key = _key(purpose)
    path = cache_dir() / "roots" / f"{purpose}-{key[:16]}"
    if path.is_dir():
        return Root(path, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_dir():
            _make(path, purpose, locked_packages(purpose))
    return Root(path, key)


def _make(path: Path, purpose: str, packages: list[Package]) -> None:
    """Unpack next to the final place, then move into place in one step."""
    files = fetch(packages)
    partial = path.with_name(f"{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for name in (*(f"usr/{name}" for name in MERGED), *PLACES):
        (partial / name).mkdir(parents=True)
    for name in MERGED:
        (partial / name).symlink_to(f"usr/{name}")
    progress = Progress(f"the lab's {purpose} root, packages", len(files))
    for done, file in enumerate(files):
        progress.update(done, file.name)
        unpack_package(file, partial)
    _complete(partial, architecture(purpose))
    partial.rename(path)
    debian = "Debian 13" if is_of_debian_13(purpose) else "Debian 12"
    progress.finish(f"the lab's {purpose} root: {len(files)} packages of {debian}")


def unpack_package(package: Path, root: Path) -> None:
    """Unpack a package's files into a folder, without documentation; raises LabError."""
    excluded = [f"--exclude=./usr/share/{name}" for name in EXCLUDED]
    extract = ["tar", "--extract", "--keep-directory-symlink", "--preserve-permissions"]
    extract += ["--no-same-owner", "--directory", str(root), *excluded]
    data = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    done = subprocess.run(extract, stdin=data.stdout, stderr=subprocess.PIPE, text=True)
    assert data.stdout is not None
    data.stdout.close()
    if data.wait() != 0 or done.returncode != 0:
        raise LabError(f"unpacking {package.name} failed: {done.stderr.strip()[-400:]}")


def _complete(root: Path, of: str) -> None:
    """Do what maintainer scripts would, and make modes and times the same everywhere."""
    for name, target in LINKS.items():
        if (root / name).parent.joinpath(target).exists() or target.startswith(".."):
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(target)
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    if of == NATIVE:
        _cache_libraries(root)
    for path in _all_below(root):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, ns=(FILE_TIME_NS, FILE_TIME_NS), follow_symlinks=False)


def _cache_libraries(root: Path) -> None:
    """Without that cache a program looks for each library in many folders."""
    places = [Place(root, "/run/root", writable=True)]
    done = run_inside(root, ["ldconfig", "-X", "-r", "/run/root"], places)
    if done.returncode != 0:
        raise LabError(f"ldconfig failed: {done.stderr}")
    shutil.rmtree(root / "var/cache/ldconfig", ignore_errors=True)


def _all_below(root: Path) -> Iterator[Path]:
    """All files and folders; a folder comes after its contents."""
    for folder, folders, files in os.walk(root, topdown=False):
        yield from (Path(folder, name) for name in (*files, *folders))
    yield root
