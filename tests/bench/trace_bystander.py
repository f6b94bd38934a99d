# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady trace -- PROGRAM` costs another program: CPU time of its reads and writes.

The other program is dd, from /dev/zero to /dev/null. Each round measures it without a trace, during
one of a program that sleeps, and during one of everything (`--all`), in turn. Prints the medians of
the rounds, with those of the ratios within a round. By hand: `build/venv/bin/python
tests/bench/trace_bystander.py`.
"""

import os
import statistics
import subprocess
import time
from pathlib import Path

from steady_lab.paths import PROJECT

STEADY = PROJECT / "build" / "bin" / "steady"
ROUNDS = 9
CALLS = 1_000_000
# Tracing is on within this time, and the program sleeps for longer than a measurement takes.
SETTLE_S = 0.7
SLEEP_S = 3


def call_ns() -> float:
    """The CPU time of a read or a write of one byte, over many."""
    dd = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={CALLS // 2}", "status=none")
    pid = os.posix_spawnp(dd[0], dd, os.environ)
    _, _, used = os.wait4(pid, 0)
    return (used.ru_utime + used.ru_stime) * 1e9 / CALLS


def beside(*options: str) -> float:
    """The same while a program that sleeps is traced."""
    command: list[str | Path] = [STEADY, "trace", *options, "--", "sleep", str(SLEEP_S)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as trace:
        time.sleep(SETTLE_S)
        took_ns = call_ns()
        trace.terminate()
    return took_ns


def main() -> None:
    rounds = [(call_ns(), beside(), beside("--all")) for _ in range(ROUNDS)]
    for number, name in enumerate(("alone", "beside -- PROGRAM", "beside --all -- PROGRAM")):
        times_ns = statistics.median(times[number] for times in rounds)
        ratio = statistics.median(times[number] / times[0] for times in rounds)
        print(f"{name}: {times_ns:.0f} ns a call (median of {ROUNDS}), {ratio:.2f} of alone")


if __name__ == "__main__":
    main()
