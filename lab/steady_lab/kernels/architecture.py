# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the flavours of the lab kernel are built for: User Mode Linux, x86-64 under QEMU, 32 bits.

On x86-64 the kernel's build needs libelf, for objtool. It lies next to the build root and
not in it: every result depends on that root's content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from steady_lab.root.alone import unpacked
from steady_lab.root.lock import OBJTOOL, locked_packages
from steady_lab.root.sandbox import Place

# User Mode Linux first, then x86-64. Each sanitizer finds other bugs; no kernel can have both.
FLAVOURS = ("base", "debug")
SANITIZERS = ("kcsan", "kasan")
LOCKSTAT = "lockstat"
QEMU_FLAVOURS = (*SANITIZERS, LOCKSTAT)
# 32-bit x86. No kernel is built: modules are compiled against its configuration.
BITS32 = "bits32"

INSIDE_LIBELF = "/run/steadyio/libelf"
_LIBRARIES = f"{INSIDE_LIBELF}/usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Architecture:
    """`name` is make's; `program`, below the tree, is what runs; `fragment` is configured first.

    `variables` are make's for kernel and modules, `kernel_variables` for the kernel alone.
    """

    name: str
    program: str
    fragment: str
    targets: Sequence[str]
    variables: Sequence[str] = ()
    kernel_variables: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    needs_libelf: bool = False
    installs_modules: bool = False

    def places(self) -> list[Place]:
        """What a build sees next to the root, the source and the tree."""
        return [Place(_libelf(), INSIDE_LIBELF)] if self.needs_libelf else []

    def recipe(self) -> bytes:
        """What decides a kernel's content and is in no other part of its key; empty for UML."""
        if self == UML:
            return b""
        libraries = _packages() if self.needs_libelf else []
        parts = [self.name, self.targets, self.variables, self.kernel_variables, libraries]
        return json.dumps(parts).encode()


UML = Architecture("um", "linux", "base", ("linux", "modules_prepare", "modules"))
# KASAN watches the modules under test alone: to watch the kernel takes longer, to compile as well.
# `make test-races` watches both.
UML_DEBUG = replace(UML, kernel_variables=("KASAN_SANITIZE=n",))
QEMU = Architecture(
    "x86_64",
    "vmlinux",
    "qemu",
    ("vmlinux", "modules"),
    # Not LIBELF_FLAGS: 6.1 does not hand it on to objtool.
    variables=(
        f"HOSTCFLAGS=-I{INSIDE_LIBELF}/usr/include",
        f"HOSTLDFLAGS=-L{_LIBRARIES}",
    ),
    # KCSAN watches the modules under test alone: it finds more of their races in the same time, and
    # none of those that the kernel's own code is known for. On 6.1 KASAN watches the code of PVH,
    # by which QEMU starts a kernel, and memcmp(), which that calls, before it has memory for it.
    kernel_variables=(
        "KCSAN_SANITIZE=n",
        "KASAN_SANITIZE_enlighten.o=n",
        "KASAN_SANITIZE_string.o=n",
    ),
    environment={"LD_LIBRARY_PATH": _LIBRARIES},
    needs_libelf=True,
    installs_modules=True,
)
# Without a kernel no symbol is resolved.
I386 = Architecture(
    "i386",
    "include/generated/autoconf.h",
    "bits32",
    ("modules_prepare",),
    variables=("KBUILD_MODPOST_WARN=1",),
)


def of_flavour(flavour: str) -> Architecture:
    """What a flavour is built for."""
    if flavour == BITS32:
        return I386
    if flavour == "debug":
        return UML_DEBUG
    return QEMU if flavour in QEMU_FLAVOURS else UML


def _packages() -> list[tuple[object, ...]]:
    return [astuple(package) for package in locked_packages(OBJTOOL)]


def _libelf() -> Path:
    """The folder with libelf, from the cache."""
    return unpacked(OBJTOOL, "libelf")
