# SPDX-License-Identifier: MIT OR Apache-2.0
"""Find, verify and unpack the kernel source that the lab kernel is made from.

Either the distribution's source package of a release (the default), or any kernel tree given by
its path.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir

# The releases that k2 and the emulated devices support; the first is the default.
RELEASES = ("6.1", "6.12")


def release_folder(build: Path, release: str) -> Path:
    """Where the work and results of a release are, so that those of two never mix in a report."""
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
    """The tree at `tree`, or the distribution's package, unpacked into the cache and verified.

    $STEADYIO_KERNEL_SOURCE, one or more trees with colons between, stands in for packages that the
    system does not have: of its trees the one of `release` is taken.
    """
    if tree is not None:
        return _user_tree(tree)
    for named in filter(None, os.environ.get("STEADYIO_KERNEL_SOURCE", "").split(":")):
        source = _user_tree(Path(named))
        if source.release == release:
            return source
    return _packaged_source(_package(release), release)


def _package(release: str) -> str:
    return f"linux-source-{release}"


def _tarball(package: str) -> Path:
    """Where the source package put its archive, or where `setup` fetched it to."""
    candidates = [
        Path("/usr/src") / f"{package}.tar.xz",
        cache_dir() / "packages" / f"{package}.tar.xz",
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise LabError(
        f"no kernel source: {candidates[0]} is missing. Run `make setup`, which installs the "
        f"package {package}, or name a kernel tree with --source DIR."
    )


def _packaged_source(package: str, release: str) -> KernelSource:
    tarball = _tarball(package)
    digest = _file_sha256_cached(tarball)
    home = cache_dir() / "src" / f"{package}-{digest[:12]}"
    if not (home / ".unpacked-and-verified").is_file():
        _unpack(tarball, home, package)
    return KernelSource(tree=home / package, content_key=digest, name=package, release=release)


def _unpack(tarball: Path, home: Path, package: str) -> None:
    """Unpack beside the final place, compare with the archive, then move into place at once."""
    _verify_package(tarball, package)
    partial = home.with_name(f"{home.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True)
    print(f"unpacking and verifying {tarball.name} (about 30 s, once)", flush=True)
    try:
        for action in ("--extract", "--diff"):
            command = ["tar", action, "--file", str(tarball), "--directory", str(partial)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LabError(
                    f"tar {action} of {tarball} failed: {done.stderr.strip()[-400:]}\n"
                    f"Reinstall the package: apt-get install --reinstall {package}"
                )
        (partial / ".unpacked-and-verified").touch()
        try:
            partial.rename(home)
        except OSError:
            if not (home / ".unpacked-and-verified").is_file():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _verify_package(tarball: Path, package: str) -> None:
    """Let dpkg compare the archive with the checksum of the installed package."""
    if tarball.parent != Path("/usr/src") or not shutil.which("dpkg"):
        return  # fetched by setup, where apt verified the package's signature; or no package
    done = subprocess.run(
        ["dpkg", "--verify", package], capture_output=True, text=True, check=False
    )
    if str(tarball) in done.stdout:
        raise LabError(
            f"{tarball} differs from what the package {package} installed.\n"
            f"Reinstall it: apt-get install --reinstall {package}"
        )


def _user_tree(tree: Path) -> KernelSource:
    tree = tree.absolute()
    if not (tree / "Makefile").is_file() or not (tree / "arch" / "um").is_dir():
        raise LabError(f"--source {tree}: not a kernel tree (no Makefile or no arch/um in it)")
    if (tree / ".config").exists() or (tree / "include" / "config").exists():
        raise LabError(
            f"--source {tree}: was built in place, which out-of-tree builds refuse. "
            f"Clean it first: make -C {tree} mrproper"
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


def _file_sha256_cached(path: Path) -> str:
    """SHA-256 of a file, remembered by its size and modification time."""
    status = path.stat()
    identity = f"{path}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
    memory = cache_dir() / "digests.json"
    try:
        known: dict[str, str] = json.loads(memory.read_text())
    except (OSError, ValueError):
        known = {}
    if identity not in known:
        with path.open("rb") as stream:
            known = {identity: hashlib.file_digest(stream, "sha256").hexdigest()}
        memory.parent.mkdir(parents=True, exist_ok=True)
        scratch = memory.with_name(f"{memory.name}.{os.getpid()}")
        scratch.write_text(json.dumps(known))
        scratch.rename(memory)
    return known[identity]
