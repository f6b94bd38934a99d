# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady store` costs against dd with O_DIRECT and SQLite, medians of one run, side by side.

  build/venv/bin/python tests/bench/store.py [--small] [DIRECTORY]

Each put and get is a process of its own on a file in DIRECTORY (default /var/tmp). The ways take
turns, so that what else the machine does meets all of them. dd overwrites a file of the same length
and calls fsync. SQLite (WAL, synchronous=FULL) runs in this process, with the connection open: its
cost without the start of a program. "device" is the time that the store's process spent in calls to
its file. Compare figures of one run only. Called by scripts/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from steady_lab.paths import BUILD

STEADY = BUILD / "bin" / "steady"
SIZES = (4096, 1 << 20)
ROUNDS, ROUNDS_SMALL = 41, 3


def run_ms(*command: str | Path) -> float:
    """Run a program and return its wall time."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - started) * 1e3


def device_ms(*arguments: str | Path) -> float:
    """Run `steady store` and return the time that it spent on its device."""
    command = [STEADY, "store", *arguments, "--json"]
    result = subprocess.run(command, check=True, capture_output=True)
    return float(json.loads(result.stdout)["device_ns"]) / 1e6


class Sqlite:
    """One blob per row, in this process."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE TABLE contents (id INTEGER PRIMARY KEY, bytes BLOB)")

    def put_ms(self, contents: bytes) -> float:
        """Replace the row durably."""
        started = time.perf_counter()
        self.connection.execute("INSERT OR REPLACE INTO contents VALUES (1, ?)", (contents,))
        self.connection.commit()
        return (time.perf_counter() - started) * 1e3

    def get_ms(self) -> float:
        """Read the row; from the page cache."""
        started = time.perf_counter()
        self.connection.execute("SELECT bytes FROM contents WHERE id = 1").fetchone()
        return (time.perf_counter() - started) * 1e3


def ways(folder: Path, size: int) -> dict[str, Callable[[], float]]:
    """The ways to put and get, by name; each call returns ms."""
    source, target, plain = folder / "in", folder / "out", folder / "plain"
    store = folder / "store"
    contents = os.urandom(size)
    source.write_bytes(contents)
    plain.write_bytes(contents)
    run_ms(STEADY, "store", "create", store, "--size", "256M", "--align", "64K")
    run_ms(STEADY, "store", "put", store, "1", source, "--twice")
    database = Sqlite(folder / "database")
    database.put_ms(contents)
    dd = ("dd", "status=none", f"bs={size}", "count=1")
    return {
        "put dd": lambda: run_ms(
            *dd, f"if={source}", f"of={plain}", "oflag=direct", "conv=fsync,notrunc"
        ),
        "put store": lambda: run_ms(STEADY, "store", "put", store, "1", source),
        "put store, device": lambda: device_ms("put", store, "1", source),
        "put SQLite, in process": lambda: database.put_ms(contents),
        "get dd": lambda: run_ms(*dd, f"if={plain}", f"of={target}", "iflag=direct"),
        "get store": lambda: run_ms(STEADY, "store", "get", store, "1", target),
        "get store, device": lambda: device_ms("get", store, "1", target),
        "get SQLite, in process": database.get_ms,
        "nothing dd": lambda: run_ms("dd", "status=none", "if=/dev/null", "of=/dev/null"),
        "nothing store": lambda: run_ms(STEADY, "--version"),
    }


def main() -> None:
    """Measure all sizes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="few rounds, to try it")
    parser.add_argument("directory", nargs="?", default="/var/tmp", help="where the files are")
    arguments = parser.parse_args()
    rounds = ROUNDS_SMALL if arguments.small else ROUNDS
    print(f"{'bytes':>8}  {'way':24} {'median ms':>10} {'x of dd':>8}")
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
            all_ways = ways(Path(name), size)
            found: dict[str, list[float]] = {way: [] for way in all_ways}
            for _ in range(rounds):
                for way, call in all_ways.items():
                    found[way].append(call())
        medians = {way: statistics.median(times) for way, times in found.items()}
        for way, median in medians.items():
            ratio = median / medians[f"{way.split()[0]} dd"]
            print(f"{size:>8}  {way:24} {median:>10.2f} {ratio:>8.2f}")


if __name__ == "__main__":
    main()
