# SPDX-License-Identifier: MIT OR Apache-2.0
"""Effect of each mechanism of look-ahead: the table of docs/results/ablations.md.

Each mechanism of ablations.toml is left out in a copy of kernel/policy, and the loads of
stream_loads.py run with the rest, on the same seeds. No kernel takes part.
By hand: build/venv/bin/python tests/devices/ablations.py [--write] [NAME...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.pages.marked_part import with_part
from steady_lab.paths import PROJECT
from stream_loads import LOADS, MORE_LOADS, Load, mean, run

COMMAND = "tests/devices/ablations.py --write"
PAGE = PROJECT / "docs" / "results" / "ablations.md"
POLICY = PROJECT / "kernel" / "policy"
SEEDS = range(1, 4)
ALL_LOADS = {**LOADS, **MORE_LOADS}
# Of so many loads the background gets less, or the p99 is longer, by more than chance.
SCATTER_LESS, SCATTER_LONGER = 0.99, 1.02
HEAD = (
    "| Left out | Loads with less background | with a longer p99 | Background, least | p99, most |",
    "| --- | ---: | ---: | --- | --- |",
)


@dataclass(frozen=True)
class Mechanism:
    """`old`, once in `file` of kernel/policy, gives way to `new`."""

    name: str
    file: str
    old: str
    new: str

    def left_out(self, text: str) -> str:
        """Return the file's text without the mechanism; raises ValueError unless it fits."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: `old` is not exactly once in {self.file}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Figures:
    """Means over the seeds: MiB/s of the background, and ms of the slowest thread."""

    background: float
    p99: float


def mechanisms() -> list[Mechanism]:
    """Return those of ablations.toml."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [Mechanism(**table) for table in tables["mechanism"]]


@contextmanager
def program(mechanism: Mechanism | None, name: str = "stream_load") -> Iterator[Path]:
    """Build one of lab/simulate without a mechanism, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        shutil.copytree(POLICY, folder / "policy")
        if mechanism:
            file = folder / "policy" / mechanism.file
            file.write_text(mechanism.left_out(file.read_text(encoding="utf-8")), encoding="utf-8")
        # What only the mechanism uses is unused now.
        flags = f"-std=gnu11 -O2 -w -I{PROJECT}/lab/devices/flash -I{folder}/policy"
        made = ["make", "-s", "-C", str(PROJECT / "lab" / "simulate"), f"CFLAGS={flags}"]
        subprocess.run(
            [*made, f"POLICY={folder}/policy", f"BUILD={folder}", f"{folder}/{name}"],
            check=True,
        )
        yield folder / name


def figures(load: Load, built: Path) -> Figures:
    """Run one load with all seeds."""

    def worst(result: dict[str, Any], key: str) -> float:
        return max((float(thread[key]) for thread in result["threads"]), default=0.0)

    words = [(f"load_seed={seed}", f"seconds={load.seconds}", *load.words) for seed in SEEDS]
    results = [run(load.threads, *each, program=built) for each in words]
    return Figures(
        mean([float(result["bg_mib_s"]) for result in results]),
        mean([worst(result, "p99_ms") for result in results]),
    )


def all_figures(mechanism: Mechanism | None, loads: Sequence[str]) -> dict[str, Figures]:
    """Return the figures of the loads without a mechanism."""
    with program(mechanism) as built, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: figures(ALL_LOADS[name], built), loads)
        return dict(zip(loads, found, strict=True))


def extreme(ratios: dict[str, float], choose: Callable[..., str]) -> str:
    """Return the load that min or max chooses, with its change in percent."""
    load = choose(ratios, key=ratios.__getitem__)
    return f"{100 * (ratios[load] - 1):+.0f} % ({load})"


def line(name: str, base: dict[str, Figures], other: dict[str, Figures]) -> str:
    """Return the row of one mechanism: changes of the figures without it."""
    loads = [load for load in base if base[load].background]
    share = {load: other[load].background / base[load].background for load in loads}
    p99 = {load: other[load].p99 / base[load].p99 for load in base}
    cells = (extreme(share, min), extreme(p99, max))
    less = sum(ratio < SCATTER_LESS for ratio in share.values())
    longer = sum(ratio > SCATTER_LONGER for ratio in p99.values())
    return f"| {name} | {less} | {longer} | {' | '.join(cells)} |"


def table(chosen: Sequence[Mechanism]) -> Iterator[str]:
    """Yield the lines of the table."""
    loads = list(ALL_LOADS)
    base = all_figures(None, loads)
    yield from HEAD
    for mechanism in chosen:
        yield line(mechanism.name, base, all_figures(mechanism, loads))


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="of a mechanism, or a part of it")
    parser.add_argument("--write", action="store_true", help="into the page")
    wanted = parser.parse_args()
    chosen = [
        each
        for each in mechanisms()
        if not wanted.name or any(name.lower() in each.name.lower() for name in wanted.name)
    ]
    lines = []
    for text in table(chosen):
        print(text, flush=True)
        lines.append(text)
    if wanted.write:
        page = with_part(PAGE.read_text(encoding="utf-8"), "ablations", COMMAND, "\n".join(lines))
        PAGE.write_text(page + "\n" if not page.endswith("\n") else page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
