# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot for several scripts: to start an emulated machine takes longer than most of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import guest
from steady_lab.kernels.stock import stock_kernel
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.root.cargo import build_steady_for, static_library_for
from steady_lab.root.compiler import compile_inside
from steady_lab.targets.qemu_disks import disks

RUNNER = Path(__file__).parent / "several.sh"
# What runs on a busy machine is not wrong; this ends what hangs.
TIMEOUT_S = 3600


@dataclass(frozen=True)
class Run:
    """A script on the disk of a kind, or on a null_blk that it makes (""); `programs`: what
    processor `steady` is compiled for, if not this machine's."""

    script: Path
    disk: str = ""
    programs: str = ""

    @property
    def name(self) -> str:
        """For its folder below the boot's, and for tested.py: SCRIPT[:PROGRAMS]-DISK."""
        programs = f":{self.programs}" if self.programs else ""
        return f"{self.script.stem}{programs}-{self.disk or 'null'}"

    def steady(self) -> Path:
        """The command; if it is compiled here, with the example of C on libsteadyio next to it."""
        if not self.programs:
            return BUILD / "bin" / "steady"
        steady = build_steady_for(self.programs)
        capi = PROJECT / "device" / "capi"
        compile_inside(
            [capi / "examples" / "record.c"],
            steady.with_name("record_from_c"),
            ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"],
            capi / "include",
            self.programs,
            static_library_for(self.programs),
        )
        return steady


@dataclass(frozen=True)
class Machine:
    """What the scripts share; they run in this order, whether or not those before passed."""

    name: str
    runs: tuple[Run, ...]
    disks: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reserved_mib: int = 0

    def boot(self, release: str, work: Path) -> dict[Run, int]:
        """Run all on a stock kernel; returns their exit statuses. Raises BootError."""
        shutil.rmtree(work)
        nodes = {disk.kind: disk.node for disk in disks(self.disks)}
        arguments = [
            word
            for run in self.runs
            for word in (
                run.name,
                f"{GUEST_PROJECT}/{run.script.relative_to(PROJECT)}",
                nodes.get(run.disk, ""),
                f"{GUEST_PROJECT}/{run.steady().relative_to(PROJECT)}",
            )
        ]
        result = guest.run_on(
            stock_kernel(release),
            RUNNER,
            work,
            self.disks,
            self.modules,
            arguments=arguments,
            timeout_s=TIMEOUT_S,
            reserved_mib=self.reserved_mib,
        )
        ended = {run: int((work / run.name / "status").read_text()) for run in self.runs[:-1]}
        return {**ended, self.runs[-1]: result.exit_status}
