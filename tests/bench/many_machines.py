# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long a sweep takes on many machines, by events: shipping, then boots. Prints a table.

  build/venv/bin/python tests/bench/many_machines.py

The rules are those of steady_lab/sweeps: a machine asks for one bundle after the other, a source
serves few at a time, who has fetched a bundle is a source. Inputs that tests/bench/sweeps.py
measured are the fields of `Measured`. docs/reference/sweeps.md has the table.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from steady_lab.sweeps.depot import SERVED_MAX
from steady_lab.sweeps.fetch import RETRY_INTERVAL_S

MACHINES = (1, 10, 100, 1000)
BOOTS = 1_000_000


@dataclass(frozen=True)
class Measured:
    """Sizes and times; `network` is assumed: of each machine, in each direction."""

    bundles_mb: tuple[float, ...]
    unpack_s: float
    boot_s: float
    client_s: float  # CPU time of the client for each boot
    task_s: float  # of the scheduler for each task
    threads: int = 2  # of a worker
    network_mb_s: float = 125.0  # 1 Gbit/s


@dataclass
class Shipping:
    """When each machine has everything, and how much the scheduler's machine sent."""

    ready_s: list[float]
    scheduler_mb: float


@dataclass
class _Source:
    served: int = 0


@dataclass
class _Depot:
    """One bundle's sources; the first is the scheduler's machine."""

    sources: list[_Source] = field(default_factory=lambda: [_Source()])

    def free(self) -> _Source | None:
        best = min(self.sources, key=lambda source: source.served)
        return best if best.served < SERVED_MAX else None


def ship(machines: int, measured: Measured) -> Shipping:
    """Let all machines ask at once; a source's network is shared by as many as it may serve."""
    depots = [_Depot() for _ in measured.bundles_mb]
    result = Shipping([], 0.0)
    # (time, number, machine's bundle, source that it got it from)
    events: list[tuple[float, int, int, _Source | None]] = [
        (0.0, m, 0, None) for m in range(machines)
    ]
    count = machines
    while events:
        now_s, _, bundle, source = heapq.heappop(events)
        if source is not None:
            source.served -= 1
            depots[bundle].sources.append(_Source())
            bundle += 1
            now_s += measured.unpack_s if bundle == len(depots) else 0.0
        if bundle == len(depots):
            result.ready_s.append(now_s)
            continue
        depot, size_mb = depots[bundle], measured.bundles_mb[bundle]
        found = depot.free()
        count += 1
        if found is None:
            heapq.heappush(events, (now_s + RETRY_INTERVAL_S, count, bundle, None))
            continue
        found.served += 1
        result.scheduler_mb += size_mb if found is depot.sources[0] else 0.0
        took_s = size_mb / (measured.network_mb_s / SERVED_MAX)
        heapq.heappush(events, (now_s + took_s, count, bundle, found))
    return result


def run(ready_s: Sequence[float], boots: int, measured: Measured) -> float:
    """Return when the last boot is done; client and scheduler do one thing at a time."""
    free_s = sorted(ready for ready in ready_s for _ in range(measured.threads))
    client_s = scheduler_s = last_s = 0.0
    for _ in range(boots):
        client_s = max(client_s, free_s[0] - measured.boot_s) + measured.client_s
        scheduler_s = max(scheduler_s, client_s) + measured.task_s
        done_s = max(free_s[0], scheduler_s) + measured.boot_s
        last_s = max(last_s, done_s)
        heapq.heapreplace(free_s, done_s)
    return last_s


def table(measured: Measured) -> str:
    """Return the table for the page."""
    lines = [
        "| machines | shipped in all | of that by the scheduler | all have it after "
        "| 10^6 boots | of the ideal time |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for machines in MACHINES:
        shipped = ship(machines, measured)
        took_s = run(shipped.ready_s, BOOTS, measured)
        ideal_s = BOOTS * measured.boot_s / (machines * measured.threads)
        all_gb = machines * sum(measured.bundles_mb) / 1000
        lines.append(
            f"| {machines} | {all_gb:.2f} GB | {shipped.scheduler_mb / 1000:.2f} GB "
            f"| {max(shipped.ready_s):.0f} s | {took_s / 3600:.1f} h | {took_s / ideal_s:.3f} |"
        )
    return "\n".join(lines)


MEASURED = Measured(
    bundles_mb=(82.2, 4.0, 5.5), unpack_s=4.6, boot_s=5.0, client_s=0.0126, task_s=0.00132
)

if __name__ == "__main__":
    print(table(MEASURED))
