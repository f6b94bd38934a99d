# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways to a card's data, by size of call: speed, device commands, and instructions.

Speed and commands are those of the emulated card in virtual time, where computing takes none.
Instructions are those of a stock kernel and the calling program under QEMU, whose clock counts them
as nanoseconds. One boot each runs tests/bench/direct_path.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.devices.emmc import EMMC
from steady_lab.errors import LabError
from steady_lab.figures.cpu_cost import compiled, in_guest
from steady_lab.figures.direct_path_spec import DirectPath, Way
from steady_lab.kernels.modules import CHARIO
from steady_lab.kernels.stock import stock_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootRequest, Target

STATS = f"/sys/kernel/debug/{EMMC.module.name}/stats"
COUNTED_RELEASE = "6.12"
# QEMU's drive takes so much in a command, and passthrough does not cut what is longer.
NVME_COMMAND_KIB = 512
NVME_CALLS = 16
TIMEOUT_S = 3600.0
RESERVED_MIB = 64
# tests/bench/caller.c begins again after as much.
PERIODIC_KIB = 64 * 1024
# In the order of their cases: a card that is taken has no block device.
FILES = ("nvme", "nvme-char", "block", "ext4", "fragmented", "char")
SCATTERED_CALLS = 32
SCATTERED_KIB = (4, 1024)
FRAGMENTED = (
    Way("fragmented", "fragmented file on ext4", "fragmented", "cached"),
    Way("fragmented-direct", "fragmented file on ext4, O_DIRECT", "fragmented", "pread"),
)


@dataclass(frozen=True)
class Case:
    """Calls of one size, one after the other."""

    way: Way
    op: str
    kib: int
    calls: int
    order: str

    @property
    def line(self) -> str:
        """Return it as the guest reads it."""
        way = self.way
        return f"{way.file} {way.how} {self.op} {self.kib * 1024} {self.calls} {self.order}\n"

    @property
    def file_kib(self) -> int:
        """Return how much of the file they need; one call comes before those that are measured."""
        whole = (self.calls + 1) * self.kib
        return min(whole, PERIODIC_KIB) if self.order == "periodic" else whole


@dataclass(frozen=True)
class Result:
    """What all calls took, in ns or instructions, and the commands that the card was sent."""

    case: Case
    took: int
    commands: int
    least: int
    most: int

    @property
    def mib_s(self) -> float:
        """Return the speed, where `took` is in ns."""
        return self.case.calls * self.case.kib / 1024 / (self.took / 1e9)

    @property
    def per_call(self) -> float:
        """Return the cost of a call."""
        return self.took / self.case.calls

    @property
    def commands_per_call(self) -> float:
        """Return how many commands a call needed, with all that is written afterwards."""
        return self.commands / self.case.calls


def timed_cases(spec: DirectPath) -> list[Case]:
    """Return the sequential cases, and few random ones, also of a fragmented file."""
    cases = [
        Case(way, op, kib, calls_of(kib, spec.total_mib, spec.calls_max), "sequential")
        for way in spec.ways
        for op in ("read", "write")
        for kib in spec.sizes_kib
    ]
    return cases + [
        Case(way, "read", kib, SCATTERED_CALLS if kib < 1024 else 8, "random")
        for way in (*spec.ways, *FRAGMENTED)
        for kib in SCATTERED_KIB
    ]


def counted_cases(spec: DirectPath) -> list[Case]:
    """Return those whose instructions are counted: of 16 MiB each would cost as 16 of 1 MiB."""
    total_mib, calls_max = spec.counted_total_mib, spec.counted_calls_max
    return [
        Case(way, op, kib, calls_of(kib, total_mib, calls_max), "sequential")
        for way in (*spec.ways, *spec.counted_ways)
        for op in ("read", "write")
        for kib in spec.sizes_kib
        if kib <= total_mib * 1024
    ]


def nvme_cases(spec: DirectPath) -> list[Case]:
    """Return reads of an NVMe drive, up to the longest command that it takes."""
    return [
        Case(way, "read", kib, NVME_CALLS, "random")
        for way in spec.nvme_ways
        for kib in spec.sizes_kib
        if kib <= NVME_COMMAND_KIB
    ]


def calls_of(kib: int, total_mib: int, calls_max: int) -> int:
    """Return how many calls transfer this much, but at least one."""
    return max(1, min(calls_max, total_mib * 1024 // kib))


def measure_on_card(
    target: Target, device: Path, cases: Sequence[Case], work: Path
) -> list[Result]:
    """Boot a lab kernel once, and run all cases on its emulated card."""
    return measure(target, device, cases, work, STATS)


def count_on_stock(cases: Sequence[Case], work: Path) -> list[Result]:
    """Boot Debian's own kernel under QEMU with one CPU and an SD card."""
    kernel = stock_kernel(COUNTED_RELEASE)
    target = Qemu(kernel, 1, ("sd",), instruction_ns=1, reserved_mib=RESERVED_MIB)
    return measure(target, None, cases, work, "instructions")


def count_on_nvme(cases: Sequence[Case], work: Path) -> list[Result]:
    """The same with an NVMe drive, whose I/O takes as long as the host's.

    If it is done before the caller sleeps, the call costs less. A call's cost is therefore the
    median of those that slept; raises LabError if there are too few.
    """
    target = Qemu(stock_kernel(COUNTED_RELEASE), 1, ("sd", "nvme"), instruction_ns=1)
    return measure(target, None, cases, work, "slept")


def measure(
    target: Target, device: Path | None, cases: Sequence[Case], work: Path, counters: str
) -> list[Result]:
    """Boot once and run all cases, in the order in which they are returned.

    `counters` is for tests/bench/direct_path.sh.
    """
    ordered = sorted(cases, key=lambda case: FILES.index(case.way.file))
    work.mkdir(parents=True, exist_ok=True)
    (work / "cases").write_text("".join(case.line for case in ordered), encoding="utf-8")
    caller = compiled("caller", PROJECT / "kernel" / "uapi")
    environment = {
        "CALLER": in_guest(caller),
        "FRAGMENT": in_guest(compiled("fragment")),
        "COUNTERS": counters,
        "FILE_MIB": str(max(case.file_kib for case in cases) // 1024 + 1),
    }
    request = BootRequest(
        command=["sh", f"{GUEST_PROJECT}/tests/bench/direct_path.sh"],
        work=work,
        device=device,
        modules=[CHARIO.name] if device else [CHARIO.name, "ext4"],
        environment=environment,
        timeout_s=TIMEOUT_S,
    )
    result = target.boot(request)
    lines = result.output.splitlines()
    if result.exit_status or len(lines) != len(ordered):
        raise LabError(f"{len(lines)} results for {len(ordered)} cases: {result.output}")
    return [
        Result(case, *map(int, line.split())) for case, line in zip(ordered, lines, strict=True)
    ]
