# SPDX-License-Identifier: MIT OR Apache-2.0
"""The CPU cost of a request under each scheduler, in instructions.

One boot of the lab kernel runs all cases next to null_blk, and tests/bench/step.c counts every
instruction between two marks. In virtual time nothing depends on the host, so the counts are the
same each time, and a difference of 1 % is a difference.

Counted are the scheduler, the block layer, what they call in lib/ and kernel/ (wake-ups, work
queues, clocks, timers), and the driver. Not counted is what is the same for all schedulers or what
only UML has: the system call, memory, and the emulation of interrupts and of the clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.instructions import (
    Function,
    Functions,
    Window,
    kernel_functions,
    module_functions,
    read_windows,
)
from steady_lab.figures.table import TextTable
from steady_lab.kernels import modules
from steady_lab.kernels.build import LabKernel
from steady_lab.paths import BUILD, GUEST_PROJECT, GUEST_WORK, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import Uml

SOURCES = PROJECT / "tests" / "bench"
MARK = "sys_sched_rr_get_interval"  # see reader.c
PARTS = ("scheduler", "block", "lib", "kernel", "null_blk")
TIMEOUT_S = 3600.0
NORMAL_CLASS, RT_CLASS = 2, 1  # as for ionice


@dataclass(frozen=True)
class Load:
    """`rounds` times, `depth` random reads of `kib` at once, from a device with `tags`."""

    title: str
    tags: int
    kib: int
    depth: int
    rounds: int


@dataclass(frozen=True)
class Scheduler:
    """A scheduler with its knobs, and the I/O class of the reads."""

    title: str
    name: str
    knobs: str = "-"
    io_class: int = NORMAL_CLASS


@dataclass(frozen=True)
class Cost:
    """The costs of one load under one scheduler, per request."""

    instructions: float
    dispatches: float


LOADS = (
    Load("one at a time", 64, 4, 1, 4),
    Load("16 at once", 64, 4, 16, 2),
    Load("16 at once, 1 tag", 1, 4, 16, 2),
)
NONE = Scheduler("none", "none")
MQ_DEADLINE = Scheduler("mq-deadline", "mq-deadline")
MQ_DEADLINE_RT = Scheduler("mq-deadline, real-time class", "mq-deadline", io_class=RT_CLASS)
K2 = Scheduler("k2", "k2")
K2_RT = Scheduler("k2, real-time class", "k2", io_class=RT_CLASS)
SCHEDULERS = (
    NONE,
    MQ_DEADLINE,
    Scheduler("kyber", "kyber"),
    Scheduler("bfq", "bfq"),
    K2,
    MQ_DEADLINE_RT,
    K2_RT,
)
# The first may cost so many times what the second does, at most: a real-time stream has a price,
# as k2 learns when its next request comes.
GOALS = ((K2, MQ_DEADLINE, 1.0), (K2_RT, MQ_DEADLINE_RT, 1.15))
SPLIT_LOAD = Load("64 KiB", 64, 64, 1, 2)
SPLIT_SCHEDULERS = (
    MQ_DEADLINE,
    Scheduler("k2, splitting off", "k2"),
    Scheduler("k2, split_kib 16", "k2", "split_kib=16"),
    Scheduler("k2, split_kib 4", "k2", "split_kib=4"),
)
SMALL_LOAD = Load("one at a time", 64, 4, 1, 2)
SMALL_SCHEDULERS = (NONE, MQ_DEADLINE, K2)
Case = tuple[Load, Scheduler]


def measure(kernel: LabKernel, cases: Sequence[Case], work: Path) -> dict[Case, Cost]:
    """Boot once and count all cases."""
    step, reader = (compiled(name) for name in ("step", "reader"))
    work.mkdir(parents=True, exist_ok=True)
    (work / "cases").write_text("".join(f"{_case_line(case)}\n" for case in cases))
    counts = work / "counts"
    wrapper = [in_guest(step), f"{GUEST_WORK}/{counts.name}", mark_address(kernel)]
    result = Uml(kernel, wrapper=wrapper).boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/bench/cpu_cost.sh"],
            work=work,
            modules=["null_blk nr_devices=0"],
            environment={"READER": in_guest(reader)},
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
        case: _cost(window, case[0].depth * case[0].rounds)
        for case, window in zip(cases, windows, strict=True)
    }


def in_guest(program: Path) -> str:
    """Return where the guest has a file of the clone."""
    return f"{GUEST_PROJECT}/{program.relative_to(PROJECT)}"


def compiled(name: str, include: Path | None = None) -> Path:
    """Compile a program of tests/bench; `include` is a further folder of headers."""
    program = BUILD / "bench" / name
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    compile_inside([SOURCES / f"{name}.c"], program, flags, include)
    return program


def _case_line(case: Case) -> str:
    load, scheduler = case
    return (
        f"{load.tags} {scheduler.name} {scheduler.knobs} {scheduler.io_class}"
        f" {load.kib * 1024} {load.depth} {load.rounds}"
    )


def mark_address(kernel: LabKernel) -> str:
    """Return where the kernel has the function that marks begin and end, for step.c."""
    for line in (kernel.tree / "System.map").read_text(encoding="utf-8").splitlines():
        address, _, name = line.split()[:3]
        if name == MARK:
            return address
    raise LabError(f"{kernel.tree}/System.map: no {MARK}")


def _modules(kernel: LabKernel, output: str) -> list[Function]:
    """The modules' functions; the guest said where they are: `module NAME ADDRESS`."""
    files = {
        "k2": (modules.build_module(kernel, modules.K2), "scheduler"),
        "null_blk": (next(kernel.tree.rglob("null_blk.ko")), "null_blk"),
    }
    found = []
    for name, address in re.findall(r"^module (\w+) (0x[0-9a-f]+)$", output, re.MULTILINE):
        file, part = files[name]
        found += module_functions(file, part, int(address, 16))
    return found


def _cost(window: Window, requests: int) -> Cost:
    counted = (n for function, n in window.executed.items() if function.part in PARTS)
    return Cost(sum(counted) / requests, window.entered["blk_mq_start_request"] / requests)


def tables(costs: dict[Case, Cost]) -> list[TextTable]:
    """Return the tables of whatever was measured."""
    loads = [load for load in (*LOADS, SMALL_LOAD) if any(case[0] is load for case in costs)]
    schedulers = [
        scheduler for scheduler in SCHEDULERS if any((load, scheduler) in costs for load in loads)
    ]
    made = [
        TextTable(
            "Instructions per read of 4 KiB",
            ["", *(load.title for load in loads)],
            [
                [scheduler.title, *(f"{costs[load, scheduler].instructions:.0f}" for load in loads)]
                for scheduler in schedulers
            ],
        ),
    ]
    if any(case[0] is SPLIT_LOAD for case in costs):
        made.append(_split_table(costs))
    return made


def _split_table(costs: dict[Case, Cost]) -> TextTable:
    def line(scheduler: Scheduler) -> list[str]:
        cost = costs[SPLIT_LOAD, scheduler]
        return [
            scheduler.title,
            f"{cost.instructions:.0f}",
            f"{cost.dispatches:.0f}",
            f"{cost.instructions / cost.dispatches:.0f}",
        ]

    return TextTable(
        "Instructions per read of 64 KiB, one at a time",
        ["", "per read", "pieces", "per piece"],
        [line(scheduler) for scheduler in SPLIT_SCHEDULERS],
    )


def missed_goals(costs: dict[Case, Cost]) -> list[str]:
    """Return where k2 costs more than it may, next to mq-deadline with the same load and class."""
    missed = []
    for load in (*LOADS, SMALL_LOAD):
        for ours, theirs, times in GOALS:
            pair = costs.get((load, ours)), costs.get((load, theirs))
            if pair[0] and pair[1] and pair[0].instructions > times * pair[1].instructions:
                missed.append(
                    f"{load.title}: {ours.title} {pair[0].instructions:.0f} instructions per read,"
                    f" {theirs.title} {pair[1].instructions:.0f}; the limit is {times} times that"
                )
    return missed
