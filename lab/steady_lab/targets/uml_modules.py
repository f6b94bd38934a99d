# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which of a lab kernel's own modules a guest loads, in what order, and where it finds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from steady_lab.kernels.build import LabKernel
from steady_lab.kernels.modules import ON_REQUEST, build_module
from steady_lab.paths import GUEST_KERNEL, GUEST_PROJECT, PROJECT
from steady_lab.targets.guest_init import ModuleLoad
from steady_lab.targets.target import BootError


def module_loads(kernel: LabKernel, texts: Sequence[str]) -> list[ModuleLoad]:
    """What to insert, in order: each module behind those it needs, none twice."""
    loads: dict[Path, ModuleLoad] = {}
    for text in texts:
        name, *params = text.split()
        path = _module_file(kernel, name)
        for needed in _needed_modules(kernel, path):
            loads.setdefault(needed, ModuleLoad(seen_by_guest(needed, kernel), unload=False))
        loads[path] = ModuleLoad(seen_by_guest(path, kernel), params)
    return list(loads.values())


def _module_file(kernel: LabKernel, name: str) -> Path:
    if name in ON_REQUEST:
        return build_module(kernel, ON_REQUEST[name])
    return Path(name).absolute() if name.endswith(".ko") else _in_tree_module(kernel, name)


def _needed_modules(kernel: LabKernel, path: Path) -> list[Path]:
    """All that `path` needs, directly or not, in the order of loading."""
    depends = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    needed: list[Path] = []
    for name in filter(None, depends.group(1).decode().split(",") if depends else []):
        module = _in_tree_module(kernel, name)
        needed += [*_needed_modules(kernel, module), module]
    return list(dict.fromkeys(needed))


def seen_by_guest(path: Path, kernel: LabKernel) -> Path:
    """Where the guest has a file of the clone or of the kernel's objects."""
    for host, guest in ((PROJECT, GUEST_PROJECT), (kernel.tree, GUEST_KERNEL)):
        if path.is_relative_to(host):
            return Path(guest) / path.relative_to(host)
    return path


def _in_tree_module(kernel: LabKernel, name: str) -> Path:
    found = sorted(kernel.tree.rglob(f"{name}.ko"))
    if not found:
        raise BootError(f"the lab kernel has no module {name}; see lab/kernel/base.config")
    return found[0]
