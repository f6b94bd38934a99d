# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lab kernels, their modules and `steady` as one file: other clones need not compile them.

root/given.py says how parts are named, and takes them.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.kernels.architecture import FLAVOURS
from steady_lab.kernels.build import build_kernel, content_key, kernel_folder
from steady_lab.kernels.host import build_preload, preload_part
from steady_lab.kernels.modules import Module, build_modules, module_part, needed_modules
from steady_lab.kernels.source import RELEASES, named_source, packaged_source
from steady_lab.progress import Progress
from steady_lab.root.cargo import (
    build_steady,
    build_steady_guest,
    build_steady_recipe,
    programs_part,
)
from steady_lab.root.given import KERNELS, STAMP, unpack

# Steps of a build that nothing reads afterwards. Objects stay: instructions are looked up in them.
STEPS = {".a", ".cmd"}
STEP_NAMES = ("vmlinux", ".tmp_vmlinux", "built-in", "build.log", ".lock")


def pack(
    file: Path,
    kernels: Sequence[tuple[str, str]],
    modules: Sequence[Module],
    with_steady: bool = True,
) -> None:
    """Write `steady-guest`, kernels (release, flavour) and their modules, built if need be.

    `with_steady`: the whole command, too. Raises LabError if a build fails, or the file cannot be
    written.
    """
    files = {
        f"{programs_part()}/steady-guest": build_steady_guest(),
    }
    if with_steady:
        files[f"{programs_part()}/steady"] = build_steady()
        files[f"{programs_part()}/steady-recipe"] = build_steady_recipe()
    files[f"{preload_part()}/preload.so"] = build_preload()
    for release, flavour in kernels:
        files |= _kernel_files(release, flavour, modules)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        _write(unfinished, files)
        unfinished.replace(file)
    except OSError as error:
        raise LabError(f"{file}: cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _kernel_files(release: str, flavour: str, modules: Sequence[Module]) -> dict[str, Path]:
    kernel = build_kernel(named_source(release=release), flavour)
    # The stamp comes last: it marks the folder as complete.
    names = [*(name for name in _kept(kernel.tree) if name != STAMP), STAMP]
    files = {f"{KERNELS}/{kernel.tree.name}/{name}": kernel.tree / name for name in names}
    built = build_modules(kernel, modules)
    for module in needed_modules(flavour, modules):
        files[f"{module_part(kernel.key, module)}/{module.name}.ko"] = built[module.name]
    return files


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


def unpack_matching(file: Path, modules: Sequence[Module]) -> tuple[list[str], list[str]]:
    """Put the builds of this clone's sources into the cache; return names taken, and left out.

    Raises LabError if the file is damaged, or nothing in it is of these sources.
    """
    wanted = _wanted(modules)
    taken, left_out = unpack(file, wanted.__contains__)
    if not taken:
        raise LabError(
            f"{file}: made of other sources; it has {', '.join(left_out) or 'nothing'}, "
            f"this clone needs {', '.join(wanted)}. Take the file of this commit, or none"
        )
    return taken, left_out


def _wanted(modules: Sequence[Module]) -> list[str]:
    names = [programs_part(), preload_part()]
    for release in RELEASES:
        source = packaged_source(release)
        for flavour in FLAVOURS:
            key = content_key(source, flavour)
            names.append(f"{KERNELS}/{kernel_folder(source, flavour).name}")
            names += [module_part(key, module) for module in needed_modules(flavour, modules)]
    return names
