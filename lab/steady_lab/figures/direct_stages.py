# SPDX-License-Identifier: MIT OR Apache-2.0
"""A read's way to the card and back by stage, in instructions: Figure 3 of the CharIO paper.

Its marks: the call, the command to the device, the device's interrupt, the end of its handler, and
back in the program. As there, a process with a real-time priority reads periodically, and the
numbers are means. A stock kernel under QEMU counts instructions as nanoseconds, so the times of
its own trace events are these marks. What the device does between command and interrupt is QEMU's,
and left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from steady_lab.errors import LabError
from steady_lab.figures.direct_path import COUNTED_RELEASE, RESERVED_MIB, Case, measure
from steady_lab.figures.direct_path_spec import DirectPath, Way
from steady_lab.kernels.stock import stock_kernel
from steady_lab.targets.qemu import Qemu

SIZES_KIB = (40, 80)
# One call comes before them. The paper made 10,000; means of 200 are within 5 % of these.
CALLS = 1000
WAYS = ("char", "char-registered", "char-dax", "block", "block-direct", "ext4", "ext4-direct")
LINE = re.compile(r"^ .*?\s(\d+): (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Stages:
    """Instructions of a read that is one command to the card: means of `calls` of them.

    Fewer than were made, where read-ahead has brought the data of the others.
    """

    way: Way
    kib: int
    # From the call to the command, from the card's last interrupt to the end of the command, and
    # from there to the program.
    parts: tuple[float, ...]
    calls: int


def count_stages(spec: DirectPath, work: Path) -> list[Stages]:
    """Boot a stock kernel under QEMU once; raises LabError."""
    ways = [way for way in (*spec.ways, *spec.counted_ways) if way.name in WAYS]
    cases = [Case(way, "read", kib, CALLS, "periodic") for way in ways for kib in SIZES_KIB]
    kernel = stock_kernel(COUNTED_RELEASE)
    target = Qemu(kernel, 1, ("sd",), instruction_ns=1, reserved_mib=RESERVED_MIB)
    results = measure(target, None, cases, work, "events")
    return [
        stages_of(result.case, (work / f"events.{number}").read_text(encoding="utf-8"))
        for number, result in enumerate(results)
    ]


def stages_of(case: Case, text: str) -> Stages:
    """Return the stages of a case from the text of the kernel's trace; raises LabError."""
    calls = _calls(text)[-case.calls :]
    if len(calls) < (1 if case.way.how == "cached" else case.calls):
        raise LabError(f"{case.line.strip()}: {len(calls)} calls of one command in the trace")
    parts = [
        (command - call, done - interrupt, end - done)
        for call, command, interrupt, done, end in calls
    ]
    means = tuple(fmean(part) for part in zip(*parts, strict=True))
    return Stages(case.way, case.kib, means, len(calls))


def _calls(text: str) -> list[tuple[int, int, int, int, int]]:
    """Return the marks of each call with one command: call, command, interrupt, done, end."""
    calls: list[tuple[int, int, int, int, int]] = []
    marks: dict[str, list[int]] = {}
    for time, event, body in LINE.findall(text):
        at = int(time)
        if event == "sys_enter":
            marks = {"enter": [at]}
        elif event == "irq_handler_entry" and "name=mmc" in body:
            marks.setdefault("irq", []).append(at)
        elif event in ("mmc_request_start", "mmc_request_done"):
            marks.setdefault(event, []).append(at)
        elif event == "sys_exit":
            call = _marks_of_call(marks, at)
            calls += [call] if call else []
            marks = {}
    return calls


def _marks_of_call(marks: dict[str, list[int]], end: int) -> tuple[int, int, int, int, int] | None:
    starts, dones = marks.get("mmc_request_start", []), marks.get("mmc_request_done", [])
    if "enter" not in marks or len(starts) != 1 or len(dones) != 1:
        return None
    interrupts = [at for at in marks.get("irq", []) if starts[0] <= at <= dones[0]]
    return (marks["enter"][0], starts[0], interrupts[-1], dones[0], end) if interrupts else None
