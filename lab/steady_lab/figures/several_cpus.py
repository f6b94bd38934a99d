# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a request costs under each scheduler where several CPUs submit to one device.

The guest is a stock kernel of Debian under QEMU, whose clock counts an instruction of any CPU as a
nanosecond. While no CPU is idle, the time of the reads is the instructions that they cost, of
kernel and program, on all CPUs together. The CPUs take turns, so the result does not include
contention for locks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.table import TextTable
from steady_lab.kernels.stock import stock_kernel
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.targets.qemu import BootKernel, Qemu
from steady_lab.targets.target import BootRequest

SOURCE = PROJECT / "tests" / "bench" / "submitters.c"
# 6.1 starts no second CPU under such a clock.
RELEASE = "6.12"
CPUS_MAX = 4
DEPTH = 32
READS = 9600
READS_SMALL = 960
TIMEOUT_S = 3600.0
# Devices of several_cpus.sh, and how many requests they take at a time.
DISKS = {"nullb0": "a device that takes all", "nullb1": "a device that takes 32 at a time"}


@dataclass(frozen=True)
class Scheduler:
    """A scheduler with its knobs, as name=value,... or -."""

    title: str
    name: str
    knobs: str = "-"


SCHEDULERS = (
    Scheduler("none", "none"),
    Scheduler("mq-deadline", "mq-deadline"),
    Scheduler("kyber", "kyber"),
    Scheduler("bfq", "bfq"),
    Scheduler("k2", "k2"),
    Scheduler("k2, inflight_max=1024", "k2", "inflight_max=1024"),
)
SCHEDULERS_SMALL = (SCHEDULERS[1], SCHEDULERS[-1])
SCHEDULER_MODULES = ("kyber-iosched", "bfq")
# A device of DISKS, and a scheduler.
Case = tuple[str, Scheduler]


@dataclass(frozen=True)
class Reads:
    """The work of this many CPUs."""

    count: int
    instructions: int


Costs = dict[Case, list[Reads]]


def measure(work: Path, kernel: BootKernel | None = None, *, small: bool = False) -> Costs:
    """Boot once; returns per device and scheduler the work of 1, 2, ... CPUs.

    `kernel`: Debian's own, unless another is given that has all schedulers built in.
    """
    cpus, reads = (2, READS_SMALL) if small else (CPUS_MAX, READS)
    schedulers = SCHEDULERS_SMALL if small else SCHEDULERS
    cases = [(disk, scheduler) for disk in DISKS for scheduler in schedulers]
    work.mkdir(parents=True, exist_ok=True)
    lines = (f"{disk} {s.name} {s.knobs} {DEPTH} {reads}\n" for disk, s in cases)
    (work / "cases").write_text("".join(lines), encoding="utf-8")
    request = BootRequest(
        command=["sh", f"{GUEST_PROJECT}/tests/bench/several_cpus.sh"],
        work=work,
        modules=["null_blk nr_devices=0", *([] if kernel else SCHEDULER_MODULES)],
        environment={"SUBMITTERS": f"{GUEST_PROJECT}/{_submitters().relative_to(PROJECT)}"},
        timeout_s=TIMEOUT_S,
    )
    target = Qemu(kernel or stock_kernel(RELEASE), cpus, instruction_ns=1)
    result = target.boot(request)
    if result.exit_status:
        raise LabError(f"reads by several CPUs failed: {result.output}")
    return _costs(result.output, cases, cpus)


def _submitters() -> Path:
    program = BUILD / "bench" / SOURCE.stem
    compile_inside([SOURCE], program, ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
    return program


def _costs(output: str, cases: Sequence[Case], cpus: int) -> Costs:
    done = []
    for line in output.splitlines():
        _, count, instructions = map(int, line.split())
        done.append(Reads(count, instructions))
    if len(done) != len(cases) * cpus:
        raise LabError(f"{len(done)} results for {len(cases)} cases: {output}")
    return {case: done[i * cpus : (i + 1) * cpus] for i, case in enumerate(cases)}


def tables(costs: Costs) -> list[TextTable]:
    """Return a table for each device."""
    made = []
    for disk, title in DISKS.items():
        rows = [(scheduler, values) for (name, scheduler), values in costs.items() if name == disk]
        header = cpus_header(len(rows[0][1]))
        body = [
            [s.title, *(f"{one.instructions / one.count:.0f}" for one in values)]
            for s, values in rows
        ]
        caption = f"Instructions per read of 4 KiB on {RELEASE}, {title}"
        made.append(TextTable(caption, ["", *header], body))
    return made


def cpus_header(cpus_max: int) -> list[str]:
    """Titles of the columns."""
    return [f"{cpus} CPUs" if cpus > 1 else "1 CPU" for cpus in range(1, cpus_max + 1)]
