# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiled parts in an archive, of another clone (kernels/prebuilt.py) or of this lab's wheel.

A part is a folder of the cache, named by the hash of all that it was made of. The same name means
the same bytes, so a part is taken if it is what would be built here.
"""

from __future__ import annotations

import base64
import fcntl
import functools
import hashlib
import importlib.metadata
import itertools
import lzma
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir

# In wheels only: scripts/wheels --prebuilt.
ARCHIVE = Path(__file__).resolve().parents[1] / "prebuilt.tar.xz"
KERNELS, PROGRAMS, MODULES, PRELOAD = "kernels", "steady", "modules", "host"
# Written last into a kernel's folder.
STAMP = "steady-built.json"
# In a kernel's folder that is being written; where it is left over, there are parts of files.
NOT_WHOLE = "make-is-running"


def part(kind: str, digest: str) -> str:
    """Return the name of a part that `digest` decides."""
    return f"{kind}/{digest[:16]}"


def given(name: str, file: str) -> Path:
    """Return where the cache has a file of a part if somebody gave it; the wheel does if it can."""
    path = cache_dir() / name / file
    if not path.is_file():
        bring(name)
    return path


def bring(name: str) -> None:
    """Put the wheel's parts into the cache; if this one is not among them, print that it is built.

    Raises LabError if the archive is not the one that was installed.
    """
    if ARCHIVE.is_file() and name not in _brought():
        print(f"{name}: not in the wheel, so it is compiled here", file=sys.stderr)


@functools.cache
def _brought() -> list[str]:
    _check_installed()
    taken, _ = unpack(ARCHIVE, lambda _: True)
    return taken


def _check_installed() -> None:
    """Compare the archive with the hash that pip noted when it installed the wheel."""
    try:
        files = importlib.metadata.files("steady-lab") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    noted = [file.hash.value for file in files if file.hash and file.name == ARCHIVE.name]
    digest = hashlib.sha256(ARCHIVE.read_bytes()).digest()
    if base64.urlsafe_b64encode(digest).decode().rstrip("=") not in noted:
        raise LabError(
            f"{ARCHIVE}: not what pip installed (run `pip install --force-reinstall` with the "
            "wheel, or delete the file: then everything is compiled here)"
        )


def unpack(file: Path, is_wanted: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Put wanted parts of an archive into the cache; return names of those taken and left out.

    Raises LabError if the archive is damaged or has other files.
    """
    taken: list[str] = []
    left_out: list[str] = []
    try:
        with tarfile.open(file, "r|xz") as packed:
            for name, members in itertools.groupby(packed, _part_of):
                (taken if is_wanted(name) else left_out).append(name)
                if is_wanted(name):
                    _take(packed, members, name)
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise LabError(f"{file}: damaged, or not of steady-lab prebuilt: {error}") from error
    except OSError as error:
        raise LabError(f"{file}: cannot be unpacked: {error}") from error
    return taken, left_out


def _part_of(member: tarfile.TarInfo) -> str:
    parts = PurePosixPath(member.name).parts
    if (
        not member.isfile()
        or len(parts) < 3
        or ".." in parts
        or parts[0] not in (KERNELS, PROGRAMS, MODULES, PRELOAD)
    ):
        raise LabError(f"{member.name}: not what steady-lab prebuilt packs")
    return "/".join(parts[:2])


def _take(packed: tarfile.TarFile, members: Iterable[tarfile.TarInfo], name: str) -> None:
    """Write a part's files, each in one step. A complete kernel is left alone."""
    folder = cache_dir() / name
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        if (folder / STAMP).is_file():
            return
        if name.startswith(f"{KERNELS}/"):
            empty(folder)
            (folder / NOT_WHOLE).touch()
        for member in members:
            path = folder.joinpath(*PurePosixPath(member.name).parts[2:])
            if not path.is_file():
                _write(packed, member, path)
        (folder / NOT_WHOLE).unlink(missing_ok=True)


def _write(packed: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = packed.extractfile(member)
    assert content is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_bytes(content.read())
    unfinished.chmod(member.mode & 0o755)
    unfinished.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process builds in the same folder."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build in {path.parent}", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def empty(tree: Path) -> None:
    """Delete all in a tree but its lock, which the caller has."""
    for path in tree.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()
