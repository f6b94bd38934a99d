# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels for x86-64 that watch the modules under test; targets/qemu.py runs them.

kcsan: the concurrency sanitizer, in these modules alone. kasan: the address sanitizer, lockdep, and
sleeping where that is forbidden. lockstat: how long each lock is held. What a guest finds its root
with is built in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.source import RELEASES, find_source
from steady_lab.root.lock import NATIVE

# lab/kernel/qemu.config was made for these.
WATCHED_RELEASES = RELEASES[:2]


@dataclass(frozen=True)
class WatchingKernel(LabKernel):
    """A lab kernel in the form that QEMU needs."""

    @property
    def architecture(self) -> str:
        """Debian's name."""
        return NATIVE

    @property
    def image(self) -> Path:
        """An ELF file, which QEMU starts directly."""
        return self.linux

    def module_closure(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Nothing: lab/kernel/qemu.config builds them in."""
        return []


def watching_kernel(release: str, flavour: str) -> WatchingKernel:
    """The kernel of a release, from the cache; built first. Raises LabError."""
    return WatchingKernel(**vars(build_kernel(find_source(release=release), flavour)))
