# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady trace` costs the programs that it traces, on this machine's clock.

fio reads 4 KiB at random past the page cache, alone and traced in turn, with a loop device below:
once over memory, and once over a file. Over memory an I/O costs only a few microseconds of the
processor, so the cost of tracing shows undiluted. The ratio is of the two runs of one round, and
the median of the rounds is printed. The first percentile is the I/O that nothing else on the
machine disturbed: on a busy machine it says more than the rest.

Called by scripts/bench. No ratio is asserted, because a busy machine must not fail the tests; that
every I/O of fio is in the trace, or the trace tells of a gap, is.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from steady_lab.paths import PROJECT

STEADY = PROJECT / "build" / "bin" / "steady"
LOADS = (("psync", 1), ("io_uring", 1), ("io_uring", 8))
IO_BYTES = 4096
PERCENTILES = ("1.000000", "50.000000", "99.000000")
HEAD = (
    "device|engine|depth|IOPS alone|IOPS traced|traced over alone|p1 us alone|traced|"
    "p50 us alone|traced|p99 us alone|traced|I/Os traced|events per I/O"
)


@dataclass(frozen=True)
class Run:
    """What fio measured in one run."""

    iops: float
    count: int
    latency_us: list[float]
    events: int = 0


def run(*command: str | Path) -> str:
    """Run a program and return its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    # Exit status 3 of `steady trace`: the trace has a gap, which its account shows.
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr}")
    return done.stdout


@contextlib.contextmanager
def disk(where: Path, mib: int, *options: str) -> Iterator[str]:
    """A loop device over a file in this folder, written once."""
    with tempfile.TemporaryDirectory(dir=where) as name:
        backing = Path(name) / "disk"
        with backing.open("wb") as file:
            for _ in range(mib):
                file.write(os.urandom(1 << 20))
        node = run("losetup", "--find", "--show", *options, backing).strip()
        try:
            yield node
        finally:
            run("losetup", "--detach", node)


def fio(node: str, engine: str, depth: int, seconds: float, *before: str | Path) -> tuple[Run, str]:
    """One run, behind the words `before`; with what those print."""
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "fio.json"
        printed = run(
            *before,
            *("fio", "--name=read", f"--filename={node}", "--rw=randread", f"--bs={IO_BYTES}"),
            "--direct=1",
            *(f"--ioengine={engine}", f"--iodepth={depth}", "--time_based", "--randseed=7"),
            *(f"--runtime={int(seconds * 1000)}ms", "--percentile_list=1:50:99"),
            *("--output-format=json", f"--output={output}"),
        )
        read = json.loads(output.read_text())["jobs"][0]["read"]
    percentiles = read["clat_ns"]["percentile"]
    latency_us = [percentiles[key] / 1000 for key in PERCENTILES]
    return Run(read["iops"], read["total_ios"], latency_us), printed


def traced(node: str, load: tuple[str, int], seconds: float, options: list[str]) -> Run:
    """The same under `steady trace`, which must have seen every I/O, or say that it did not."""
    before: list[str | Path] = [STEADY, "trace", "--json", "--device", node, *options, "--"]
    engine, depth = load
    result, printed = fio(node, engine, depth, seconds, *before)
    trace = json.loads(printed)
    account = trace["account"]
    # The block layer may merge two I/Os that are next to each other into one request.
    seen = sum(one["bytes"] for one in (*trace["ios"], *trace["requests"])) // IO_BYTES
    if account["events_lost"]:
        print(f"{account['events_lost']} events lost of {account['events']}: the trace has a gap")
    elif seen < result.count or account["unmatched"]:
        raise SystemExit(f"{result.count} I/Os by fio, {seen} in the trace, which says {account}")
    return replace(result, events=account["events"])


def row(
    name: str, node: str, load: tuple[str, int], seconds: float, rounds: int, options: list[str]
) -> list[str]:
    """Alone and traced in turn; medians."""
    engine, depth = load
    pairs = []
    for _ in range(rounds):
        alone, _ = fio(node, engine, depth, seconds)
        pairs.append((alone, traced(node, load, seconds, options)))

    def iops(place: int) -> float:
        return statistics.median(pair[place].iops for pair in pairs)

    def latency_us(place: int, percentile: int) -> float:
        return statistics.median(pair[place].latency_us[percentile] for pair in pairs)

    ratio = statistics.median(pair[1].iops / pair[0].iops for pair in pairs)
    latencies = [
        f"{latency_us(place, percentile):.2f}"
        for percentile in range(len(PERCENTILES))
        for place in (0, 1)
    ]
    count = sum(pair[1].count for pair in pairs)
    events = statistics.median(pair[1].events / max(pair[1].count, 1) for pair in pairs)
    speeds = [f"{iops(0):.0f}", f"{iops(1):.0f}", f"{ratio:.3f}"]
    return [name, engine, str(depth), *speeds, *latencies, str(count), f"{events:.1f}"]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for line in rows:
        cells = zip(line, widths, strict=True)
        print("  ".join(cell.rjust(width) for cell, width in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a moment of each, for the tests")
    parser.add_argument("--sched", action="store_true", help="trace with --sched")
    arguments = parser.parse_args()
    asked = ["--sched"] if arguments.sched else []
    # Less for the tests: a container has 64 MiB of /dev/shm, if nobody says otherwise.
    seconds, rounds, mib = (0.2, 1, 16) if arguments.small else (1.0, 7, 64)
    if os.geteuid() != 0:
        print("skipped: tracing and loop devices need root")
        return
    build = PROJECT / "build" / "bench"
    build.mkdir(parents=True, exist_ok=True)
    rows = [HEAD.split("|")]
    for name, where, *options in (("memory", Path("/dev/shm")), ("file", build, "--direct-io=on")):
        with disk(where, mib, *options) as node:
            for load in LOADS:
                rows.append(row(name, node, load, seconds, rounds, asked))
    print_table(rows)


if __name__ == "__main__":
    main()
