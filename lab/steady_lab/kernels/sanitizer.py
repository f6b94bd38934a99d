# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels for x86-64 that look for races and broken locking; targets/qemu.py runs them.

kcsan: the concurrency sanitizer, in the modules under test. kasan: the address sanitizer, lockdep,
and sleeping where that is forbidden. What a guest finds its root with is built in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.source import find_source


@dataclass(frozen=True)
class SanitizerKernel(LabKernel):
    """As QEMU wants a kernel."""

    @property
    def image(self) -> Path:
        """An ELF file, which QEMU starts directly."""
        return self.linux

    def module_closure(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Nothing: lab/kernel/qemu.config builds them in."""
        return []


def sanitizer_kernel(release: str, flavour: str) -> SanitizerKernel:
    """The kernel of a release, from the cache; built first. Raises LabError."""
    return SanitizerKernel(**vars(build_kernel(find_source(release=release), flavour)))
