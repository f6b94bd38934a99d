# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lab kernels and `steady` as one file: other clones of the same sources need not compile them.

In it each has the name that it has in the cache, with the hash of all that it was made of. The same
name means the same bytes (docs/reference/reproducible.md); a clone takes what it would build.
"""

from __future__ import annotations

import itertools
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from steady_lab.errors import LabError
from steady_lab.kernels.architecture import FLAVOURS
from steady_lab.kernels.build import (
    NOT_WHOLE,
    STAMP,
    build_kernel,
    empty,
    kernel_folder,
    locked,
)
from steady_lab.kernels.source import RELEASES, find_source, packaged_source
from steady_lab.paths import cache_dir
from steady_lab.progress import Progress
from steady_lab.root.cargo import build_steady, build_steady_guest, prebuilt_program

# Steps of a build that nothing reads afterwards. Objects stay: instructions are looked up in them.
STEPS = {".a", ".cmd"}
STEP_NAMES = ("vmlinux", ".tmp_vmlinux", "built-in", "build.log", ".lock")


def pack(file: Path, kernels: Sequence[tuple[str, str]]) -> None:
    """Write `steady` and kernels (release, flavour), built if need be, to a file.

    Raises LabError if a build fails, or the file cannot be written.
    """
    steady = f"steady/{prebuilt_program('steady').parent.name}"
    # `steady` last: it says that the folder is complete.
    files = {
        f"{steady}/steady-guest": build_steady_guest(),
        f"{steady}/steady": build_steady(),
    }
    for release, flavour in kernels:
        tree = build_kernel(find_source(release=release), flavour).tree
        names = [name for name in _kept(tree) if name != STAMP]
        files |= {f"kernels/{tree.name}/{name}": tree / name for name in (*names, STAMP)}
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        _write(unfinished, files)
        unfinished.replace(file)
    except OSError as error:
        raise LabError(f"{file}: cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _kept(tree: Path) -> list[str]:
    return sorted(
        str(path.relative_to(tree))
        for path in tree.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.suffix not in STEPS
        and not path.name.startswith(STEP_NAMES)
    )


def _write(file: Path, files: dict[str, Path]) -> None:
    progress = Progress("packing, files", len(files))
    with tarfile.open(file, "w:xz") as packed:
        for done, (name, path) in enumerate(files.items()):
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            member.mode = path.stat().st_mode & 0o755
            with path.open("rb") as stream:
                packed.addfile(member, stream)
            progress.update(done)
    progress.finish(f"{len(files)} files packed")


def unpack(file: Path) -> tuple[list[str], list[str]]:
    """Put what this clone would build into the cache; return names of what was taken, and left out.

    Raises LabError if the file is damaged, or nothing in it is of these sources.
    """
    wanted = {
        str(folder.relative_to(cache_dir())): folder
        for folder in (
            *(kernel_folder(packaged_source(r), flavour) for r in RELEASES for flavour in FLAVOURS),
            prebuilt_program("steady").parent,
        )
    }
    taken: list[str] = []
    left_out: list[str] = []
    try:
        with tarfile.open(file, "r|xz") as packed:
            for name, members in itertools.groupby(packed, _folder):
                (taken if name in wanted else left_out).append(name)
                if name in wanted:
                    _take(packed, members, wanted[name])
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise LabError(f"{file}: damaged, or not of steady-lab prebuilt: {error}") from error
    except OSError as error:
        raise LabError(f"{file}: cannot be unpacked: {error}") from error
    if not taken:
        raise LabError(
            f"{file}: made of other sources; it has {', '.join(left_out) or 'nothing'}, "
            f"this clone needs {', '.join(wanted)}. Take the file of this commit, or none"
        )
    return taken, left_out


def _folder(member: tarfile.TarInfo) -> str:
    parts = PurePosixPath(member.name).parts
    if not member.isfile() or len(parts) < 3 or ".." in parts or member.name.startswith("/"):
        raise LabError(f"{member.name}: not what steady-lab prebuilt packs")
    return "/".join(parts[:2])


def _take(packed: tarfile.TarFile, members: Iterable[tarfile.TarInfo], folder: Path) -> None:
    """Write a kernel's or steady's files; what says that it is finished comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        if (folder / STAMP).is_file() or (folder / "steady").is_file():
            return
        empty(folder)
        (folder / NOT_WHOLE).touch()
        for member, path in _places(members, folder):
            content = packed.extractfile(member)
            assert content is not None
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"{path.name}.new")
            unfinished.write_bytes(content.read())
            unfinished.chmod(member.mode & 0o755)
            unfinished.replace(path)
        (folder / NOT_WHOLE).unlink()


def _places(
    members: Iterable[tarfile.TarInfo], folder: Path
) -> Iterator[tuple[tarfile.TarInfo, Path]]:
    for member in members:
        yield member, folder.joinpath(*PurePosixPath(member.name).parts[2:])
