# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build k2 and the emulated devices against a lab kernel, in seconds, outside the source folders.

`make M=` leaves its objects beside the sources, so the sources are mirrored below build/modules
first; only files whose content changed are written, which keeps rebuilds short.
"""

import fcntl
import hashlib
import re
import subprocess
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.kernels.build import LabKernel, make_inside
from steady_lab.paths import BUILD, GUEST_KERNEL, INSIDE_MODULE, PROJECT
from steady_lab.root.sandbox import Place

# Mirrored folder -> (module folder inside it, module name).
MODULES = {
    "k2": (PROJECT / "kernel", "k2"),
    "steady_emmc": (PROJECT / "lab" / "devices", "emmc"),
}
# What the debug kernel of 6.12 needs besides, before all others; its source says why.
SHADOW_MODULE = ("module_shadow", (PROJECT / "lab" / "kernel" / "module_shadow", "."))
SOURCE_SUFFIXES = {".c", ".h"}
SOURCE_NAMES = {"Kbuild", "Makefile"}


def build_modules(kernel: LabKernel) -> dict[str, Path]:
    """Build all modules for `kernel`; returns module name -> .ko file, in the order of loading."""
    return {
        name: build_module(kernel, name, sources, subfolder)
        for name, (sources, subfolder) in _modules_for(kernel).items()
    }


def _modules_for(kernel: LabKernel) -> dict[str, tuple[Path, str]]:
    needs_shadow = kernel.flavour == "debug" and kernel.release == "6.12"
    return dict([SHADOW_MODULE]) | MODULES if needs_shadow else MODULES


def build_module(kernel: LabKernel, name: str, sources: Path, subfolder: str = ".") -> Path:
    """Build `name`.ko from the folder `sources` unless it is up to date; a warning is an error."""
    home = _home(kernel)
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build_locked(kernel, home, name, sources, subfolder)


def _home(kernel: LabKernel) -> Path:
    return BUILD / "modules" / kernel.tree.name


def sparse_findings(kernel: LabKernel) -> str:
    """What sparse says about the sources of all modules (not about the kernel's headers)."""
    findings = []
    for name, (sources, subfolder) in _modules_for(kernel).items():
        build_module(kernel, name, sources, subfolder)
        mirror = _home(kernel) / sources.name
        done = _make(kernel, mirror, subfolder, "C=2")
        if done.returncode != 0:
            raise LabError(f"sparse could not check {name}:\n{done.stderr[-2000:]}")
        lines = (done.stdout + done.stderr).splitlines()
        findings += [
            line for line in lines if re.match(rf"{INSIDE_MODULE}\S*: (warning|error)", line)
        ]
    return "\n".join(findings)


def _build_locked(kernel: LabKernel, home: Path, name: str, sources: Path, subfolder: str) -> Path:
    mirror = home / sources.name
    folder = mirror / subfolder
    module = folder / f"{name}.ko"
    stamp = home / f"{name}.stamp"
    files = _source_files(sources)
    digest = _digest(kernel, files, sources)
    if module.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return module
    _mirror(files, sources, mirror)
    done = _make(kernel, mirror, subfolder)
    if done.returncode != 0 or not module.is_file():
        raise LabError(f"building {name}.ko failed:\n{done.stdout[-1500:]}{done.stderr[-4000:]}")
    if "warning:" in done.stderr:
        raise LabError(f"building {name}.ko gave warnings, which count as errors:\n{done.stderr}")
    stamp.write_text(digest)
    return module


def _make(
    kernel: LabKernel, mirror: Path, subfolder: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    places = [Place(mirror, INSIDE_MODULE, writable=True)]
    folder = f"{INSIDE_MODULE}/{subfolder}".removesuffix("/.")
    where = ("-C", GUEST_KERNEL, f"M={folder}")
    command = make_inside(kernel.source, kernel.tree, places, *where, *arguments, "modules")
    return subprocess.run(command, capture_output=True, text=True, check=False)


def source_digest() -> str:
    """SHA-256 over every source file of every module; part of the identity of a result."""
    digest = hashlib.sha256()
    for sources, _ in MODULES.values():
        for path in _source_files(sources):
            digest.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _source_files(sources: Path) -> list[Path]:
    return sorted(
        path
        for path in sources.rglob("*")
        if path.is_file() and (path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES)
    )


def _digest(kernel: LabKernel, files: list[Path], sources: Path) -> str:
    digest = hashlib.sha256(kernel.key.encode())
    for path in files:
        digest.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _mirror(files: list[Path], sources: Path, mirror: Path) -> None:
    """Copy what changed, remove what is gone; objects of earlier builds stay."""
    wanted = {path.relative_to(sources) for path in files}
    for relative in wanted:
        target = mirror / relative
        content = (sources / relative).read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in _source_files(mirror):
        relative = path.relative_to(mirror)
        if relative not in wanted and not path.name.endswith(".mod.c"):
            path.unlink()
