# SPDX-License-Identifier: MIT OR Apache-2.0
"""Find, verify and unpack the kernel source that the lab kernel is made from.

Either the distribution's source package (the default), or any kernel tree given by its path.
"""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir

PACKAGE = "linux-source-6.1"


@dataclass(frozen=True)
class KernelSource:
    """A kernel tree ready for out-of-tree builds.

    `content_key` changes whenever the content does.
    """

    tree: Path
    content_key: str
    name: str


def find_source(tree: Path | None = None) -> KernelSource:
    """The tree at `tree`, or the distribution's package, unpacked into the cache and verified.

    $STEADYIO_KERNEL_SOURCE stands in for `tree` where the system has no such package.
    """
    named = os.environ.get("STEADYIO_KERNEL_SOURCE")
    if tree is None and named:
        tree = Path(named)
    if tree is not None:
        return _user_tree(tree)
    return _packaged_source(_tarball())


def _tarball() -> Path:
    """Where the source package put its archive, or where `setup` fetched it to."""
    candidates = [
        Path("/usr/src") / f"{PACKAGE}.tar.xz",
        cache_dir() / "packages" / f"{PACKAGE}.tar.xz",
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise LabError(
        f"no kernel source: {candidates[0]} is missing. Run `make setup`, which installs the "
        f"package {PACKAGE}, or name a kernel tree with --source DIR."
    )


def _packaged_source(tarball: Path) -> KernelSource:
    digest = _file_sha256_cached(tarball)
    home = cache_dir() / "src" / f"{PACKAGE}-{digest[:12]}"
    if not (home / ".unpacked-and-verified").is_file():
        _unpack(tarball, home)
    return KernelSource(tree=home / PACKAGE, content_key=digest, name=PACKAGE)


def _unpack(tarball: Path, home: Path) -> None:
    """Unpack beside the final place, compare with the archive, then move into place at once."""
    _verify_package(tarball)
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
                    f"Reinstall the package: apt-get install --reinstall {PACKAGE}"
                )
        (partial / ".unpacked-and-verified").touch()
        try:
            partial.rename(home)
        except OSError:
            if not (home / ".unpacked-and-verified").is_file():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _verify_package(tarball: Path) -> None:
    """Let dpkg compare the archive with the checksum of the installed package."""
    if tarball.parent != Path("/usr/src") or not shutil.which("dpkg"):
        return  # fetched by setup, where apt verified the package's signature; or no package
    done = subprocess.run(
        ["dpkg", "--verify", PACKAGE], capture_output=True, text=True, check=False
    )
    if str(tarball) in done.stdout:
        raise LabError(
            f"{tarball} differs from what the package {PACKAGE} installed.\n"
            f"Reinstall it: apt-get install --reinstall {PACKAGE}"
        )


def _user_tree(tree: Path) -> KernelSource:
    tree = tree.absolute()
    if not (tree / "Kbuild").is_file() or not (tree / "arch" / "um").is_dir():
        raise LabError(f"--source {tree}: not a kernel tree (no Kbuild or no arch/um in it)")
    if (tree / ".config").exists() or (tree / "include" / "config").exists():
        raise LabError(
            f"--source {tree}: was built in place, which out-of-tree builds refuse. "
            f"Clean it first: make -C {tree} mrproper"
        )
    return KernelSource(tree=tree, content_key=_tree_signature(tree), name=str(tree))


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
