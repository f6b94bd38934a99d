# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a call costs the kernel, in instructions: on a block device and on a character device.

Like cpu_cost.py, with a card instead of null_blk: one boot runs all cases, and tests/bench/step.c
counts every instruction between two marks. The count includes the kernel from the system call on,
with all threads that it wakes. It excludes the emulation of interrupts, clock and memory protection
(arch/um), and the emulated card with the library functions that copy its data and find its pages.
About 50 of these instructions are the callers' own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.devices.emmc import EMMC
from steady_lab.errors import LabError
from steady_lab.figures.cpu_cost import TIMEOUT_S, compiled, in_guest, mark_address
from steady_lab.figures.instructions import (
    Function,
    Functions,
    Window,
    kernel_functions,
    module_functions,
    read_windows,
)
from steady_lab.figures.table import TextTable
from steady_lab.kernels.build import LabKernel
from steady_lab.kernels.modules import CHARIO, build_module
from steady_lab.paths import GUEST_PROJECT, GUEST_WORK, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import Uml

DEVICE = PROJECT / "experiments" / "devices" / "test-plain.toml"
NOT_COUNTED = ("arch", "host", "card")
FUNCTIONS_OF_CARD = ("sg_miter_", "sg_copy_", "__sg_page_iter_", "xa_", "xas_")


@dataclass(frozen=True)
class Way:
    """A way to ask for a transfer, and the device that it is asked of."""

    title: str
    node: str
    how: str


@dataclass(frozen=True)
class Size:
    """One call's length, and how many calls are counted."""

    kib: int
    rounds: int

    @property
    def title(self) -> str:
        """Return the length as tables show it."""
        return f"{self.kib // 1024} MiB" if self.kib >= 1024 else f"{self.kib} KiB"


BLOCK, CHARACTER = EMMC.node, "/dev/chardisk0"
PREAD = Way("block device, pread, O_DIRECT", BLOCK, "pread")
URING = Way("block device, io_uring, fixed buffer", BLOCK, "uring_fixed")
CHAR = Way("character device, pread", CHARACTER, "pread")
REGISTERED = Way("character device, registered buffer", CHARACTER, "buffer")
WAYS = (PREAD, URING, CHAR, REGISTERED)
SIZES = (Size(4, 2), Size(64, 2), Size(1024, 1))
OPS = ("read", "write")
Case = tuple[Way, str, Size]
CASES: tuple[Case, ...] = tuple((way, op, size) for way in WAYS for op in OPS for size in SIZES)
SMALL_CASES: tuple[Case, ...] = tuple((way, "read", SIZES[0]) for way in WAYS)

# A read with a registered buffer costs at most this part of one with O_DIRECT.
GOALS = {4: 0.65, 64: 0.55, 1024: 0.30}


def measure(kernel: LabKernel, cases: Sequence[Case], work: Path) -> dict[Case, float]:
    """Boot once and count all cases; block devices come first in them."""
    step, caller = compiled("step"), compiled("caller", PROJECT / "kernel" / "uapi")
    work.mkdir(parents=True, exist_ok=True)
    (work / "cases").write_text("".join(f"{_case_line(case)}\n" for case in cases))
    counts = work / "counts"
    wrapper = [in_guest(step), f"{GUEST_WORK}/{counts.name}", mark_address(kernel)]
    result = Uml(kernel, wrapper=wrapper).boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/bench/call_cost.sh"],
            work=work,
            device=DEVICE,
            modules=[CHARIO.name],
            environment={"CALLER": in_guest(caller)},
            timeout_s=TIMEOUT_S,
        )
    )
    if result.exit_status:
        raise LabError(f"counting instructions failed: {result.output}")
    functions = Functions([*kernel_functions(kernel.tree), *_modules(kernel, result.output)])
    windows = list(read_windows(counts, functions))
    if len(windows) != len(cases):
        raise LabError(f"{counts}: {len(windows)} windows for {len(cases)} cases")
    return {
        case: sum(_parts(window).values()) / case[2].rounds
        for case, window in zip(cases, windows, strict=True)
    }


def _parts(window: Window) -> Counter[str]:
    parts: Counter[str] = Counter()
    for function, executed in window.executed.items():
        of_card = function.part == "lib" and function.name.startswith(FUNCTIONS_OF_CARD)
        if function.part not in NOT_COUNTED and not of_card:
            parts[function.part] += executed
    return parts


def _case_line(case: Case) -> str:
    way, op, size = case
    return f"{way.node} {way.how} {op} {size.kib * 1024} {size.rounds}"


def _modules(kernel: LabKernel, output: str) -> list[Function]:
    """The modules' functions; the guest said where they are: `module NAME ADDRESS`."""
    files = {
        "chario": (build_module(kernel, CHARIO), "chario"),
        EMMC.module.name: (build_module(kernel, EMMC.module), "card"),
    }
    found = []
    for name, address in re.findall(r"^module (\w+) (0x[0-9a-f]+)$", output, re.MULTILINE):
        file, part = files[name]
        found += module_functions(file, part, int(address, 16))
    return found


def table(costs: dict[Case, float]) -> TextTable:
    """Return the table of all that was measured."""
    columns = [(op, size) for op in OPS for size in SIZES if (PREAD, op, size) in costs]
    rows = [
        [way.title, *(_cell(costs, way, op, size) for op, size in columns)]
        for way in WAYS
        if any(case[0] is way for case in costs)
    ]
    heads = ["", *(f"{op} {size.title}" for op, size in columns)]
    return TextTable("Instructions of the kernel per call", heads, rows)


def _cell(costs: dict[Case, float], way: Way, op: str, size: Size) -> str:
    cost = costs.get((way, op, size))
    return "" if cost is None else f"{cost:.0f}"


def missed_goals(costs: dict[Case, float]) -> list[str]:
    """Return where a registered buffer costs more than it may next to O_DIRECT and io_uring."""
    missed = []
    for size in SIZES:
        for op in OPS:
            ours, direct, uring, plain = (
                costs.get((way, op, size)) for way in (REGISTERED, PREAD, URING, CHAR)
            )
            share = GOALS[size.kib]
            if op == "read" and ours and direct and ours > share * direct:
                missed.append(
                    f"{op} {size.title}: {ours:.0f} with a registered buffer, more than"
                    f" {share} of {direct:.0f} with O_DIRECT"
                )
            if ours and uring and ours >= uring:
                missed.append(f"{op} {size.title}: {ours:.0f}, io_uring {uring:.0f}")
            if plain and direct and plain > direct:
                missed.append(f"{op} {size.title}: {plain:.0f} by pread, O_DIRECT {direct:.0f}")
    return missed
