# SPDX-License-Identifier: MIT OR Apache-2.0
"""What of `steady trace` costs what: its groups of events, one after the other, on this machine.

fio reads 4 KiB at random from a loop device over memory, first untraced, then with one group of the
events of `steady trace` more each time, last under `steady trace` itself, whose reader empties the
buffers. No file system and no disk: what is seen is the processor's time. The groups of one round
follow each other, and the median of the rounds' differences is printed. The first percentile is the
I/O that nothing else disturbed.

Called by scripts/bench. Nothing is asserted of times, because a busy machine must not fail the
tests.
"""

import argparse
import contextlib
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from trace_cost import STEADY, disk, fio, print_table

TRACING = Path("/sys/kernel/tracing")
BLOCK = "bio_queue bio_remap split bio_backmerge bio_frontmerge rq_merge getrq rq_insert rq_issue"
EVENTS = {
    "block events": [f"block/block_{name}" for name in f"{BLOCK} rq_requeue rq_complete".split()],
    "and io_uring's": ["io_uring/io_uring_submit_req", "io_uring/io_uring_complete"],
    "and the call's": [
        f"syscalls/sys_{side}_{call}"
        for side in ("enter", "exit")
        for call in ("pread64", "io_uring_enter")
    ],
}
STEPS = ("nothing", *EVENTS, "steady trace")
LOADS = (("psync", 1), ("io_uring", 1), ("io_uring", 8))


def has(event: str) -> bool:
    return (TRACING / "events" / event).is_dir()


@contextlib.contextmanager
def events(groups: list[str], node: str) -> Iterator[None]:
    """These groups of events, for this device, in an instance whose buffer nobody reads."""
    instance = TRACING / "instances" / f"parts-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "trace_clock").write_text("mono")
        number = Path(node).stat().st_rdev
        dev = os.major(number) << 20 | os.minor(number)
        for event in (event for group in groups for event in EVENTS[group]):
            folder = instance / "events" / event
            if event.startswith("block/"):
                name = "old_dev" if event.endswith("remap") else "dev"
                (folder / "filter").write_text(f"{name} == {dev}")
            (folder / "enable").write_text("1")
        yield
    finally:
        instance.rmdir()


def step(name: str, node: str, engine: str, depth: int, seconds: float) -> tuple[float, float]:
    """Return us per I/O and the first percentile of the latency, in us."""
    if name == "steady trace":
        before = (STEADY, "trace", "--json", "--device", node, "--")
        result, _ = fio(node, engine, depth, seconds, *before)
    else:
        with events(list(EVENTS)[: STEPS.index(name)], node):
            result, _ = fio(node, engine, depth, seconds)
    return 1e6 / result.iops, result.latency_us[0]


def rows(node: str, engine: str, depth: int, seconds: float, rounds: int) -> list[list[str]]:
    """One line per step: what it adds to the untraced run of its round."""
    measured = [[step(name, node, engine, depth, seconds) for name in STEPS] for _ in range(rounds)]
    table = []
    for place, name in enumerate(STEPS):

        def median(value: int, place: int = place) -> float:
            return statistics.median(
                of[place][value] - (of[0][value] if place else 0) for of in measured
            )

        sign = "+" if place else ""
        table.append([engine, str(depth), name, f"{median(0):{sign}.2f}", f"{median(1):{sign}.2f}"])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a moment of each, for the tests")
    arguments = parser.parse_args()
    # Less for the tests: a container has 64 MiB of /dev/shm, if nobody says otherwise.
    seconds, rounds, mib = (0.1, 1, 16) if arguments.small else (1.0, 9, 64)
    if os.geteuid() != 0:
        print("skipped: tracing and loop devices need root")
        return
    missing = [event for group in EVENTS.values() for event in group if not has(event)]
    if missing:
        print(f"skipped: no {missing[0]} in {TRACING}/events: is tracefs mounted there?")
        return
    table = [["engine", "depth", "traced", "us per I/O", "p1 us"]]
    with disk(Path("/dev/shm"), mib) as node:
        for engine, depth in LOADS:
            table += rows(node, engine, depth, seconds, rounds)
    print_table(table)


if __name__ == "__main__":
    main()
