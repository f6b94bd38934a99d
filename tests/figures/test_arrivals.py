# SPDX-License-Identifier: MIT OR Apache-2.0
"""The requests of jobs with arrivals come when the workload says, whatever the device does."""

import re
from itertools import pairwise
from pathlib import Path

from steady_lab.devices.spec import load_device
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
WORKLOAD = "tests/figures/arrivals.toml"
EVENTS = "/sys/kernel/tracing/events/block/block_rq_insert"
SCRIPT = f"""set -e
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
echo mono >/sys/kernel/tracing/trace_clock
echo 'comm == "steady-guest"' >{EVENTS}/filter
echo 1 >{EVENTS}/enable
{GUEST_PROJECT}/build/bin/steady-guest bench {GUEST_PROJECT}/{WORKLOAD} --device {{node}} --json \\
    >record
cp /sys/kernel/tracing/trace trace
"""
# "steady-guest-57 [000] d.... 1.234567: block_rq_insert: 179,0 RS 4096 () 1234 + 8 [steady-guest]"
EVENT = re.compile(
    r"^\s*steady-guest-\d+ .* (\d+\.\d+): block_rq_insert: \S+ R\S* (\d+) ", re.MULTILINE
)
# Between the thread's wake-up and the request, and the time of day that the trace rounds to us.
LATE_MS = 0.1


def times_ms(text: str) -> dict[int, list[float]]:
    """When requests came, by their size in KiB."""
    found: dict[int, list[float]] = {}
    for time_s, size in EVENT.findall(text):
        found.setdefault(int(size) // 1024, []).append(float(time_s) * 1000)
    return found


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def off_ms(times: list[float], period_ms: float) -> list[float]:
    """How far each is from a time that comes once in a period; the least is 0."""
    off = [time - number * period_ms for number, time in enumerate(times)]
    return [value - min(off) for value in off]


def share_above(values: list[float], limit: float) -> float:
    return sum(value > limit for value in values) / len(values)


def test_arrivals_are_as_the_workload_says(work: Path) -> None:
    script = SCRIPT.format(node=load_device(CARD).kind.node)
    result = uml().boot(BootRequest(["sh", "-c", script], work, device=CARD))
    assert result.exit_status == 0, result.output
    times = times_ms((work / "trace").read_text())

    # 400 periods of 50 ms, and no drift although each read waits for the background.
    off = off_ms(times[4], 50)
    assert len(off) == 400
    assert 1.5 < max(off) < 2 + LATE_MS, "a jitter of +- 1 ms"
    assert 0.4 < share_above(off, 1) < 0.6, "it is uniform"

    sporadic = gaps(times[8])
    assert 20 - LATE_MS < min(sporadic) < 22
    assert 45 < sum(sporadic) / len(sporadic) < 55
    # exp(-1) of the time above 20 ms, whose mean is 30 ms.
    assert 0.30 < share_above(sporadic, 50) < 0.44

    poisson = gaps(times[16])
    assert min(poisson) < 5
    assert 45 < sum(poisson) / len(poisson) < 55
    assert 0.30 < share_above(poisson, 50) < 0.44

    bursts = times[32]
    assert max(off_ms(bursts[::4], 100)) < LATE_MS
    assert max(gaps(bursts[:4])) < 20, "one after the other, each waits for the device only"

    phases = gaps(times[64])
    assert {round(gap / 50) for gap in phases} == {1, 41}
    assert sum(gap > 2000 for gap in phases) == 6, "20 s are 6 phases and a beginning"
