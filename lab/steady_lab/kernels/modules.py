# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build kernel modules against a kernel, in seconds, outside the source folders.

`make M=` leaves its objects next to the sources, so the sources are mirrored below build/modules
first; only files whose content changed are written, which keeps rebuilds short.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, INSIDE_MODULE, PROJECT
from steady_lab.root.given import MODULES, given, part
from steady_lab.root.sandbox import Place

SOURCE_SUFFIXES = {".c", ".h", ".mk"}
SOURCE_NAMES = {"Kbuild", "Makefile"}


@dataclass(frozen=True)
class Module:
    """A module's sources: `folders` below `home`, with its Kbuild in the first of them."""

    name: str
    home: Path
    folders: tuple[str, ...] = (".",)

    def files(self) -> list[Path]:
        """All sources, in the order of their names."""
        found = (path for folder in self.folders for path in (self.home / folder).rglob("*"))
        return sorted(
            path
            for path in found
            if path.is_file() and (path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES)
        )


K2 = Module("k2", PROJECT / "kernel", ("k2", "policy", "compat", "lane"))
CHARIO = Module("chario", PROJECT / "kernel", ("chario", "compat", "uapi", "lane"))
# By the name that a boot asks for them with; no other boot has them.
ON_REQUEST = {CHARIO.name: CHARIO}


def emulated(name: str, folder: str) -> Module:
    """Return the module of an emulated device, with what all of them are made of."""
    shared = (*(f"lab/devices/{part}" for part in ("media", "flash", "params")), "kernel/compat")
    return Module(name, PROJECT, (f"lab/devices/{folder}", *shared))


# Loaded first on the debug kernels; its source gives the reason.
SHADOW = Module("module_shadow", PROJECT / "lab" / "kernel" / "module_shadow")


def on_request(texts: Sequence[str]) -> list[Module]:
    """The project's own modules of a boot's list, each "NAME key=value ..."."""
    names = {text.split()[0] for text in texts}
    return [module for name, module in ON_REQUEST.items() if name in names]


class Kernel(Protocol):
    """A kernel that modules are built for: of the lab, or Debian's own."""

    @property
    def tree(self) -> Path:
        """The folder of its files."""

    @property
    def key(self) -> str:
        """The hash of all that decides its content."""

    @property
    def release(self) -> str:
        """Version and patch level, as in 6.1."""

    @property
    def flavour(self) -> str:
        """The lab's base or debug; stock."""

    def make(self, more: Sequence[Place], *arguments: str) -> list[str]:
        """Return the command that runs make for a module, in the lab's root."""


def build_modules(kernel: Kernel, modules: Sequence[Module]) -> dict[str, Path]:
    """Build modules for `kernel`; returns module name -> .ko file, in the order of loading."""
    return {
        module.name: build_module(kernel, module)
        for module in needed_modules(kernel.flavour, modules)
    }


def needed_modules(flavour: str, modules: Sequence[Module]) -> list[Module]:
    """Return modules in the order of loading, after those that the flavour needs first."""
    return [SHADOW, *modules] if flavour == "debug" else list(modules)


def build_module(kernel: Kernel, module: Module) -> Path:
    """Build a .ko file unless it is up to date; a warning is an error."""
    home = _home(kernel)
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{module.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build_locked(kernel, home, module)


def _home(kernel: Kernel) -> Path:
    return BUILD / "modules" / kernel.tree.name


def sparse_findings(kernel: Kernel, modules: Sequence[Module]) -> str:
    """The report of sparse on the modules' sources (not on the kernel's headers)."""
    findings = []
    for module in needed_modules(kernel.flavour, modules):
        build_module(kernel, module)
        _mirror(module, _home(kernel) / module.name)  # not there if the module came compiled
        done = _make(kernel, module, "C=2")
        if done.returncode != 0:
            raise LabError(f"sparse could not check {module.name}:\n{done.stderr[-2000:]}")
        lines = (done.stdout + done.stderr).splitlines()
        findings += [
            line for line in lines if re.match(rf"{INSIDE_MODULE}\S*: (warning|error)", line)
        ]
    return "\n".join(findings)


def _build_locked(kernel: Kernel, home: Path, module: Module) -> Path:
    mirror = home / module.name
    built = mirror / module.folders[0] / f"{module.name}.ko"
    stamp = home / f"{module.name}.stamp"
    digest = _digest(kernel.key, module)
    if built.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return built
    prebuilt = given(module_part(kernel.key, module), built.name)
    if prebuilt.is_file():
        built.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(prebuilt, built)
        stamp.write_text(digest)
        return built
    _mirror(module, mirror)
    done = _make(kernel, module)
    said = f"building {module.name}.ko"
    if done.returncode != 0 or not built.is_file():
        raise LabError(f"{said} failed:\n{done.stdout[-1500:]}{done.stderr[-4000:]}")
    if "warning:" in done.stderr:
        raise LabError(f"{said} gave warnings, which count as errors:\n{done.stderr}")
    stamp.write_text(digest)
    return built


def module_part(kernel_key: str, module: Module) -> str:
    """Return the name of a compiled module (given.py)."""
    return part(MODULES, _digest(kernel_key, module))


def _digest(kernel_key: str, module: Module) -> str:
    return hashlib.sha256(f"{kernel_key}{source_digest([module])}".encode()).hexdigest()


def _make(kernel: Kernel, module: Module, *arguments: str) -> "subprocess.CompletedProcess[str]":
    places = [Place(_home(kernel) / module.name, INSIDE_MODULE, writable=True)]
    folder = f"{INSIDE_MODULE}/{module.folders[0]}".removesuffix("/.")
    command = kernel.make(places, f"M={folder}", *arguments, "modules")
    return subprocess.run(command, capture_output=True, text=True, check=False)


def source_digest(modules: Iterable[Module]) -> str:
    """SHA-256 over every source file of the modules; part of the identity of a result."""
    digest = hashlib.sha256()
    for module in modules:
        for path in module.files():
            digest.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _mirror(module: Module, mirror: Path) -> None:
    """Copy changed files, remove deleted ones; objects of earlier builds stay."""
    wanted = {path.relative_to(module.home) for path in module.files()}
    for relative in wanted:
        target = mirror / relative
        content = (module.home / relative).read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in replace(module, home=mirror).files():
        relative = path.relative_to(mirror)
        if relative not in wanted and not path.name.endswith(".mod.c"):
            path.unlink()
