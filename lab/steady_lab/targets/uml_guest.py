# SPDX-License-Identifier: MIT OR Apache-2.0
"""A boot of User Mode Linux, planned: all that decides it, and where its files are.

It can be pickled and run on a machine that has nothing but those files, at places of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from steady_lab.kernels.build import LabKernel
from steady_lab.paths import GUEST_KERNEL, GUEST_PROJECT, GUEST_WORK
from steady_lab.root.sandbox import Place, sandbox
from steady_lab.targets.guest_run import GuestProcess, run_guest
from steady_lab.targets.one_cpu import one_cpu
from steady_lab.targets.target import BootRequest, BootResult, Part
from steady_lab.targets.uml_standstill import Standstill

# Files of the kernel's tree: the kernel, its modules, and the symbols of a hung guest.
HEADER = "arch/x86/include/generated/uapi/asm/unistd_64.h"
KERNEL_FILES = ("linux", "System.map", HEADER, "**/*.ko")
# Files of the clone: the programs, modules and scripts of figures.
PROJECT_FILES = (
    "build/bin/steady",
    "build/bin/steady-guest",
    "build/bin/steady-recipe",
    "build/host/preload.so",
    "experiments/applications/**/*",
)


@dataclass(frozen=True)
class UmlGuest:
    """`words` is the kernel's command line; `root` and `project` are folders in the guest."""

    kernel: LabKernel
    init: str
    environment: Mapping[str, str]
    words: tuple[str, ...]
    root: Path
    project: Path

    def parts(self) -> list[Part]:
        """Return the files it needs besides its work folder."""
        modules = f"build/modules/{self.kernel.tree.name}/**/*.ko"
        return [
            Part("root", self.root),
            Part("kernel", self.kernel.tree, _matching(self.kernel.tree, KERNEL_FILES)),
            Part("project", self.project, _matching(self.project, (*PROJECT_FILES, modules))),
        ]

    def at(self, places: Mapping[str, Path]) -> UmlGuest:
        """Return the same guest with its parts at other places, by their names."""
        kernel = replace(self.kernel, tree=places["kernel"])
        return replace(self, kernel=kernel, root=places["root"], project=places["project"])

    def boot(self, request: BootRequest, on_standstill: Callable[[str], None]) -> BootResult:
        """Run it in a sandbox that sees the request's work folder alone, as `Target.boot`."""
        standstill = Standstill(self.kernel)

        def look(pid: int) -> None:
            if finding := standstill.look(pid, time.monotonic()):
                on_standstill(finding)

        with one_cpu() as on_it:

            def command(work: Path) -> list[str]:
                return [*on_it, *self._sandbox(work), *self.words]

            return run_guest(
                GuestProcess(self.init, command, look, last_seen=lambda: standstill.finding),
                request,
            )

    def _sandbox(self, work: Path) -> list[str]:
        """The guest's folders are where the guest has them: no path of this machine reaches it.

        The kernel's random numbers depend on its command line, for one.
        """
        places = [
            Place(self.project, GUEST_PROJECT),
            Place(self.kernel.tree, GUEST_KERNEL),
            Place(work, GUEST_WORK, writable=True),
        ]
        return sandbox(self.root, places, self.environment)


def _matching(folder: Path, patterns: tuple[str, ...]) -> tuple[str, ...]:
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return tuple(sorted({str(path.relative_to(folder)) for path in found if path.is_file()}))
