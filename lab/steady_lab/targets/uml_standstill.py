# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detect a guest whose clock stops while its CPU is busy, and report what runs there.

In virtual time a program that never sleeps stops the clock for the whole guest, so no timer that
others wait for expires. From outside this looks like a slow boot. A long computation, such as a
checksum, looks the same: so this only reports, and the boot continues.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from steady_lab.kernels.build import LabKernel
from steady_lab.targets.uml_process import UmlProcess, call_names

NS_PER_S = 1e9
# How often a program was seen, and in which system call, by its number.
Seen = Counter[tuple[str, int | None]]
# Often enough to find the one of several programs that runs most.
LOOK_INTERVAL_S = 0.25
# Of the samples of a program that makes one system call after the other, at least this share finds
# it in one; the others find it between two calls, which takes longer.
CALL_SHARE_MIN = 0.1


@dataclass(frozen=True)
class Limit:
    """The clock stops if it gains less than `rate_max` over `busy_s` of CPU time.

    CPU time, not wall time: a guest that gets no processor stops too.
    """

    busy_s: float
    rate_max: float


LIMITS = (
    # Loops that never wait gain up to 0.0003 (`while :; do sync; done`). fio's calibration of its
    # clock, which comes to an end, gains 64 ms in 5 to 30 s: more than 0.002.
    Limit(busy_s=5, rate_max=0.001),
    # Loops that also read the clock, or whose calls fail, gain 0.005 to 0.01: as much as that
    # calibration, but for longer.
    Limit(busy_s=60, rate_max=0.02),
)


@dataclass
class _Since:
    """Since when the clock may be standing still, and the samples since then."""

    virtual_ns: int
    cpu_s: float
    seen: Seen = field(default_factory=Counter)
    still: bool = False


class Standstill:
    """To be polled while a guest runs; `finding` is the last standstill, if any."""

    def __init__(self, kernel: LabKernel) -> None:
        self.finding = ""
        self._kernel = kernel
        self._guest: UmlProcess | None = None
        self._since: dict[Limit, _Since] = {}
        self._next_s = 0.0

    def look(self, process: int, now_s: float) -> str:
        """The report, once per standstill, else nothing; the guest is below `process`."""
        if now_s < self._next_s:
            return ""
        self._next_s = now_s + LOOK_INTERVAL_S
        try:
            self._guest = self._guest or UmlProcess(self._kernel, process)
            return self._look(self._guest)
        except (OSError, ValueError, LookupError):
            # The guest has not begun or has ended, or this machine does not permit reading it.
            return ""

    def _look(self, guest: UmlProcess) -> str:
        virtual_ns, cpu_s, doing = guest.virtual_ns(), guest.cpu_s(), guest.doing()
        was_still = any(since.still for since in self._since.values())
        for limit in LIMITS:
            since = self._since.setdefault(limit, _Since(virtual_ns, cpu_s))
            since.seen[doing] += 1
            busy_s, gained_ns = cpu_s - since.cpu_s, virtual_ns - since.virtual_ns
            if gained_ns > limit.rate_max * NS_PER_S * max(busy_s, limit.busy_s):
                del self._since[limit]
            elif busy_s >= limit.busy_s:
                since.still = True
                self.finding = self._words(since.seen, gained_ns, busy_s)
        is_still = any(since.still for since in self._since.values())
        return self.finding if is_still and not was_still else ""

    def _words(self, seen: Seen, gained_ns: int, busy_s: float) -> str:
        return (
            "the guest's clock stops while its CPU is busy: "
            f"{_most(seen, call_names(self._kernel))}, "
            f"{gained_ns / 1000:.0f} us of virtual time in {busy_s:.0f} s"
        )


def _most(seen: Seen, names: Mapping[int, str]) -> str:
    """The program in most samples, and its most frequent system call if it makes many."""
    programs: Counter[str] = Counter()
    for (program, _), count in seen.items():
        programs[program] += count
    ((most, looks),) = programs.most_common(1)
    calls = Counter(
        {call: seen[name, call] for name, call in seen if name == most and call is not None}
    )
    if calls.total() < CALL_SHARE_MIN * looks:
        return f"{most} in its own code"
    ((call, _),) = calls.most_common(1)
    return f"{most} in {names.get(call, f'system call {call}')}()"
