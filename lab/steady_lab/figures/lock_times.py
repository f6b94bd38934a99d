# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long a scheduler's locks are held where several CPUs submit to one device.

The load of several_cpus.py, on a kernel that counts for each lock (kernels/watching.py, lockstat).
The clock counts instructions, so what the kernel calls a hold time is the instructions of all CPUs
while the lock was held, those that keep the count among them. A CPU whose turn ends while it holds
the lock makes the others wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.several_cpus import DISKS, RELEASE, Case, cpus_header, measure
from steady_lab.figures.table import TextTable
from steady_lab.kernels.architecture import LOCKSTAT
from steady_lab.kernels.watching import watching_kernel

# By scheduler the kernel's names of its locks.
LOCKS = {
    "none": (),
    "mq-deadline": ("&dd->lock", "&dd->zone_lock"),
    "kyber": ("&kcq->lock", "&khd->lock"),
    "bfq": ("&bfqd->lock",),
    "k2": ("&k2->lock",),
}


@dataclass(frozen=True)
class Held:
    """The locks in one run: how often taken and waited for, and the instructions meanwhile."""

    reads: int
    taken: int
    waited_for: int
    instructions: float


def measure_locks(work: Path, *, small: bool = False) -> dict[Case, list[Held]]:
    """Boot once; returns per device and scheduler what 1, 2, ... CPUs did. Raises LabError."""
    done = measure(work, watching_kernel(RELEASE, LOCKSTAT), small=small)
    return {
        case: [
            _held(work / f"locks-{number}-{cpus}", LOCKS[case[1].name], reads.count)
            for cpus, reads in enumerate(some, start=1)
        ]
        for number, (case, some) in enumerate(done.items())
    }


def _held(file: Path, locks: Sequence[str], reads: int) -> Held:
    text = file.read_text(encoding="utf-8")
    found = [row for name in locks for row in _rows(text, name)]
    if locks and not found:
        raise LabError(f"{file} has none of {', '.join(locks)}")
    return Held(
        reads,
        taken=sum(int(row[7]) for row in found),
        waited_for=sum(int(row[1]) for row in found),
        # Columns of times are in us.
        instructions=1000 * sum(float(row[10]) for row in found),
    )


def _rows(text: str, name: str) -> list[list[str]]:
    """Columns of the lines of a lock: of the kernel's Documentation/locking/lockstat.rst."""
    lines = re.findall(rf"^\s*{re.escape(name)}(?:/\d+)?: +(\d.*)$", text, re.MULTILINE)
    return [line.split() for line in lines]


def tables(found: dict[Case, list[Held]]) -> list[TextTable]:
    """Return a table for each device."""
    made = []
    for disk, title in DISKS.items():
        rows = [
            (scheduler, values)
            for (name, scheduler), values in found.items()
            if name == disk and LOCKS[scheduler.name]
        ]
        caption = (
            f"Per read of 4 KiB on {RELEASE}, {title}: instructions while a lock of the scheduler "
            "is held, how often one is taken, and how often it is waited for"
        )
        body = [[s.title, *(_cell(one) for one in values)] for s, values in rows]
        made.append(TextTable(caption, ["", *cpus_header(len(rows[0][1]))], body))
    return made


def _cell(held: Held) -> str:
    per_read = (held.instructions, held.taken, held.waited_for)
    instructions, taken, waited_for = (value / held.reads for value in per_read)
    return f"{instructions:.0f} ({taken:.2f}, {waited_for:.3f})"
