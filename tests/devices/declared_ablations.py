# SPDX-License-Identifier: MIT OR Apache-2.0
"""What declared tasks lose without a mechanism: the second table of docs/results/ablations.md.

Each mechanism of declared_ablations.toml is left out in a copy of kernel/policy, and its load runs
in lab/simulate/task_set.c. No kernel takes part.
By hand: build/venv/bin/python tests/devices/declared_ablations.py [--write]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ablations import PAGE, Mechanism, program
from steady_lab.pages.marked_part import with_part
from stream_loads import card_words

COMMAND = "tests/devices/declared_ablations.py --write"
BLOCK_US = 500
# The longest times of the card's commands, and of the software; ns.
LIMITS = (
    "read_limit_ns=400000 read_limit_per_kib_ns=11101 "
    "write_limit_ns=690000 write_limit_per_kib_ns=15201 host_us=4 inflight_max=1"
)
TASK = f"task kib=64 jitter_us=200 block_us={BLOCK_US}"
THINK = "cpu_us=4 declared_jitter_us=202 think_us=10"
# By name: reads of 512 KiB next to a task that reads 64 KiB.
LOADS = {
    "computes between its requests": (
        f"greedy=1 trials=4 {TASK} period_us=20000 ios=2 cpu_us=1000 "
        "declared_jitter_us=700 think_us=2010 exact=2"
    ),
    "some jobs come later": f"trials=20 {TASK} period_us=10000 {THINK}",
    "next to requests that may not be split": (
        f"greedy=1 trials=4 bg_whole=1 {TASK} period_us=10000 {THINK}"
    ),
}
HEAD = (
    "| Left out | Load | Background, MiB/s: with | without | Blocked for longer: with | without |",
    "| --- | --- | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True)
class Figures:
    """MiB/s of the background, and the share of the jobs that it blocked for longer than stated."""

    background: float
    blocked: float


def mechanisms() -> list[tuple[Mechanism, str]]:
    """Return those of declared_ablations.toml, each with its load."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [
        (Mechanism(**{key: value for key, value in table.items() if key != "load"}), table["load"])
        for table in tables["mechanism"]
    ]


def figures(mechanism: Mechanism | None, load: str) -> Figures:
    """Run a load without a mechanism."""
    words = [*card_words(), *LIMITS.split(), "bg_read=1", "bg_kib=512", *LOADS[load].split()]
    with program(mechanism, "task_set") as built:
        done = subprocess.run([built, *words], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    (task,) = seen["tasks"]
    return Figures(seen["background_mib_s"], sum(task["over"]) / task["jobs"])


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield from HEAD
    for mechanism, load in mechanisms():
        base, other = figures(None, load), figures(mechanism, load)
        cells = (
            f"{base.background:.1f}", f"{other.background:.1f}",
            f"{100 * base.blocked:.1f} %", f"{100 * other.blocked:.1f} %",
        )  # fmt: skip
        yield f"| {mechanism.name} | {load} | {' | '.join(cells)} |"


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into the page")
    text = "\n".join(table())
    if parser.parse_args().write:
        page = with_part(PAGE.read_text(encoding="utf-8"), "declared-ablations", COMMAND, text)
        PAGE.write_text(page.rstrip("\n") + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
