# SPDX-License-Identifier: MIT OR Apache-2.0
"""Folders as archives, named by the hash of their contents; kept in each machine's cache.

A part is packed where it is, and unpacked where a guest needs it. After unpacking, the contents are
hashed again: what arrived damaged, or is something else, never reaches a guest.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir
from steady_lab.targets.target import Part

DIGEST_CHARS = 32
ZSTD_LEVEL = 3


def bundles() -> Path:
    """Return the folder of archives and of their unpacked files."""
    return cache_dir() / "bundles"


def archive(digest: str) -> Path:
    """Return where the archive of these contents is, if this machine has it."""
    return bundles() / f"{digest}.tar.zst"


def contents_digest(folder: Path, names: Iterable[str]) -> str:
    """Return the hash of names, kinds, permission to execute, and contents."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            told, content = "link", os.fsencode(path.readlink())
        elif stat.S_ISDIR(mode):
            told, content = "folder", b""
        else:
            told, content = f"file {bool(mode & stat.S_IXUSR)}", _sha256(path)
        digest.update(f"{name}\0{told}\0".encode() + content + b"\0")
    return digest.hexdigest()[:DIGEST_CHARS]


def _sha256(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def names_below(folder: Path) -> list[str]:
    """Return everything in a folder, folders before their contents."""
    found = (
        str(Path(parent, name).relative_to(folder))
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    return sorted(found)


def pack(part: Part) -> str:
    """Return the digest of a part, packed into the cache unless its archive is there."""
    names = _with_folders(part.files) if part.files else names_below(part.folder)
    digest = contents_digest(part.folder, names)
    with locked(digest):
        if not archive(digest).is_file():
            with unfinished(archive(digest)) as path, path.open("wb") as stream:
                _write(stream, part.folder, names)
    return digest


def _with_folders(files: Iterable[str]) -> list[str]:
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    return sorted({*folders, *files})


def _write(stream: io.BufferedWriter, folder: Path, names: Iterable[str]) -> None:
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    with (
        compressor.stream_writer(stream) as compressed,
        tarfile.open(fileobj=compressed, mode="w|") as packed,
    ):
        for name in names:
            packed.add(folder / name, name, recursive=False, filter=_owned_by_nobody)


def _owned_by_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(digest: str) -> Path:
    """Return the folder with these contents, from this machine's archive of them.

    Raises LabError if the archive holds something else.
    """
    place = bundles() / digest
    if not place.is_dir():
        with unfinished(place) as folder:
            folder.mkdir()
            with zstandard.open(archive(digest), "rb") as stream:
                _read(stream, folder)
            found = contents_digest(folder, names_below(folder))
            if found != digest:
                archive(digest).unlink()
                raise LabError(
                    f"{archive(digest)}: its contents hash to {found}; deleted, run again"
                )
    return place


def _read(stream: io.BufferedIOBase, folder: Path) -> None:
    try:
        with tarfile.open(fileobj=stream, mode="r|") as packed:
            # Python 3.11.2, which is Debian 12's, has no filters. Links of a root are absolute.
            packed.extraction_filter = getattr(tarfile, "tar_filter", None)
            packed.extractall(folder)
    except (tarfile.TarError, zstandard.ZstdError):
        pass  # The digest tells.


@contextmanager
def unfinished(final: Path) -> Iterator[Path]:
    """A name to write to, which becomes the final one at the end; what fails leaves nothing."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".new-") as folder:
        path = Path(folder, final.name)
        yield path
        path.rename(final)


@contextmanager
def locked(digest: str) -> Iterator[None]:
    """Only one thread or process of this machine packs, fetches or unpacks the same contents."""
    bundles().mkdir(parents=True, exist_ok=True)
    with (bundles() / f".{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pack_bytes(folder: Path, names: Iterable[str]) -> bytes:
    """Return small files of a folder as one archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as packed:
        for name in names:
            packed.add(folder / name, name, recursive=False)
    return zstandard.ZstdCompressor(level=3).compress(stream.getvalue())


def unpack_bytes(data: bytes, folder: Path) -> None:
    """Undo `pack_bytes`."""
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(data))) as packed:
        packed.extraction_filter = getattr(tarfile, "tar_filter", None)
        packed.extractall(folder)


@functools.cache
def lab_digest() -> str:
    """Return the hash of this lab's own Python, which scheduler and workers must share."""
    home = Path(__file__).resolve().parents[1]
    names = sorted(str(path.relative_to(home)) for path in home.rglob("*.py"))
    return contents_digest(home, names)[:12]


def copy_into(place: Path, folder: Path) -> None:
    """Copy unpacked files to where a guest may write."""
    shutil.copytree(place, folder, dirs_exist_ok=True)
