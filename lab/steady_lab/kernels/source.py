# SPDX-License-Identifier: MIT OR Apache-2.0
"""Find the kernel source that the lab kernel is made from.

Either Debian's source package of a release, pinned in lab/root/packages.lock (the default), or any
kernel tree given by its path.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir
from steady_lab.root.apt import fetch
from steady_lab.root.lock import LINUX, Package, locked_packages

# What lab kernels are built of, and modules for Debian's own kernels; the first is the default.
RELEASES = ("6.1", "6.12", "7.3")


def release_folder(build: Path, release: str) -> Path:
    """The folder of a release's work and results, so that releases never mix in a report."""
    return build if release == RELEASES[0] else build / release


@dataclass(frozen=True)
class KernelSource:
    """A kernel tree ready for out-of-tree builds.

    `content_key` changes whenever the content does. `release` is its version and patch level,
    such as 6.12.
    """

    tree: Path
    content_key: str
    name: str
    release: str


def find_source(tree: Path | None = None, release: str = RELEASES[0]) -> KernelSource:
    """The tree at `tree`, or the pinned package, unpacked into the cache.

    As named_source() otherwise.
    """
    source = named_source(tree, release)
    present(source.tree)
    return source


def named_source(tree: Path | None = None, release: str = RELEASES[0]) -> KernelSource:
    """The tree at `tree`, or where the pinned package is once it is unpacked: see present().

    $STEADYIO_KERNEL_SOURCE, one or more trees with colons between, stands in for the packages: of
    its trees the one of `release` is taken.
    """
    if tree is not None:
        return _user_tree(tree)
    for named in filter(None, os.environ.get("STEADYIO_KERNEL_SOURCE", "").split(":")):
        source = _user_tree(Path(named))
        if source.release == release:
            return source
    return packaged_source(release)


def packaged_source(release: str) -> KernelSource:
    """The pinned package's tree, where it is once it is unpacked."""
    (package,) = locked_packages(f"{LINUX}-{release}")
    home = cache_dir() / "src" / f"{package.name}-{package.sha256[:12]}"
    name = f"{package.name} {package.version}"
    return KernelSource(home / package.name, package.sha256, name, release)


def present(tree: Path) -> Path:
    """Return a kernel's tree; that of a pinned package is downloaded and unpacked if need be."""
    for release in RELEASES:
        (package,) = locked_packages(f"{LINUX}-{release}")
        if packaged_source(release).tree == tree and not (tree / "Makefile").is_file():
            _unpack(package, tree.parent)
    return tree


def _unpack(package: Package, home: Path) -> None:
    """Download, unpack next to the final place, then move into place in one step."""
    (file,) = fetch([package])
    partial = home.with_name(f"{home.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True)
    print(f"unpacking {package.name} (about 20 s, once)", file=sys.stderr)
    archive = f"./usr/src/{package.name}.tar.xz"
    try:
        command = (
            f"set -o pipefail; dpkg-deb --fsys-tarfile {shlex.quote(str(file))}"
            f" | tar --extract --to-stdout {archive}"
            f" | tar --extract --xz --directory {shlex.quote(str(partial))}"
        )
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"unpacking {file} failed: {done.stderr.strip()[-400:]}")
        tree = home / package.name
        if not (tree / "Makefile").is_file():
            # Earlier labs unpacked only some headers of 7.3.
            shutil.rmtree(home, ignore_errors=True)
        try:
            partial.rename(home)
        except OSError:
            if not (tree / "Makefile").is_file():  # else another process was faster
                raise
        file.unlink(missing_ok=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _user_tree(tree: Path) -> KernelSource:
    tree = tree.absolute()
    if not (tree / "Makefile").is_file() or not (tree / "arch" / "um").is_dir():
        raise LabError(f"--source {tree}: not a kernel tree (no Makefile or no arch/um in it)")
    if (tree / ".config").exists() or (tree / "include" / "config").exists():
        raise LabError(
            f"--source {tree}: was built in place, which out-of-tree builds reject "
            f"(clean it first: make -C {tree} mrproper)"
        )
    return KernelSource(tree, _tree_signature(tree), name=str(tree), release=_release(tree))


def _release(tree: Path) -> str:
    """Version and patch level from the head of the tree's Makefile."""
    numbers = dict(
        re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)$", (tree / "Makefile").read_text(), re.MULTILINE)
    )
    if len(numbers) != 2:
        raise LabError(f"--source {tree}: its Makefile names no VERSION and PATCHLEVEL")
    return f"{numbers['VERSION']}.{numbers['PATCHLEVEL']}"


def _tree_signature(tree: Path) -> str:
    """Digest over every file's name, size and modification time (about 1 s for a kernel)."""
    digest = hashlib.sha256(str(tree).encode())
    for folder, subfolders, files in os.walk(tree):
        subfolders[:] = sorted(name for name in subfolders if name != ".git")
        for name in sorted(files):
            path = Path(folder) / name
            status = path.lstat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
