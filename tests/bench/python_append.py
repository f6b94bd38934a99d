# SPDX-License-Identifier: MIT OR Apache-2.0
"""What append() of the Python package takes on this machine's clock, and what reading takes.

Next to it the official mcap package, which many programs write with: it packs a record into a
buffer, and writes the buffer to the file in the same call when that is large enough. Every call is
timed by itself, so each row contains two readings of the clock, which the first row has alone. The
collector of garbage runs as it does by default. Then the same next to another thread of Python that
computes: the interpreter hands its lock over every 5 ms, and append() cannot change that.

Called by scripts/bench. Nothing here is asserted: a busy machine must not fail the tests. Only rows
of one run can be compared.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, sleep
from typing import Any

import numpy as np
from mcap.reader import make_reader
from mcap.writer import Writer
from steady_lab.paths import BUILD, PROJECT

PERIOD_S = 0.000_02
RECORD = bytes(range(100))
IMAGE = np.zeros((64, 64), dtype=np.uint8)
HEAD = f"{'call':<44}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>10}  ns, of calls"


def installed(small: bool) -> Any:
    """The package, built and installed now."""
    command = [str(PROJECT / "scripts" / "python-package")]
    command += ["--debug"] if small else []
    command.append(str(BUILD / "bench" / "python"))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    sys.path.insert(0, done.stdout.strip())
    return importlib.import_module("steadyio")


def show(name: str, times_ns: list[int]) -> None:
    """One line of the table."""
    times_ns.sort()
    count = len(times_ns)
    points = [times_ns[min(count - 1, int(count * part))] for part in (0.5, 0.99, 0.999)]
    print(f"{name:<44}" + "".join(f"{ns:>9}" for ns in points) + f"{times_ns[-1]:>10}  {count}")


def timed(count: int, call: Callable[[], object]) -> list[int]:
    """The times of so many calls. They pause now and then, as a device would have it."""
    times_ns = []
    for number in range(count):
        begin = perf_counter_ns()
        call()
        times_ns.append(perf_counter_ns() - begin)
        if number % 100 == 99:
            sleep(100 * PERIOD_S)
    return times_ns


class Busy:
    """A thread of Python that computes while this lasts."""

    def __enter__(self) -> None:
        """Begin."""
        self.stop = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        """Compute."""
        number = 0
        while not self.stop:
            number = (number * 1_103_515_245 + 12_345) % 2**31

    def __exit__(self, *_: object) -> None:
        """End."""
        self.stop = True
        self.thread.join()


def mcap_writer(file: Any) -> Callable[[], object]:
    """Adds a message as the documentation of the package does."""
    writer = Writer(file)
    writer.start()
    schema = writer.register_schema("Numbers", "", b"")
    channel = writer.register_channel("/a", "", schema)
    return lambda: writer.add_message(channel, log_time=0, publish_time=0, data=RECORD)


def append(steadyio: Any, folder: Path, count: int) -> None:
    """The table."""
    topics = [steadyio.Topic("/a", 100), steadyio.Topic("/image", IMAGE.nbytes)]
    print(HEAD)
    show("nothing", timed(count, lambda: None))
    pool = {"segment_bytes": 16 << 20, "segments": 4}
    with steadyio.Recorder(folder, topics, **pool) as recorder:
        a, image = recorder.topic("/a"), recorder.topic("/image")
        show("append, 100 bytes", timed(count, lambda: a.append(RECORD)))
        show("append, 4096 bytes of numpy", timed(count // 4, lambda: image.append(IMAGE)))
        with (folder.parent / "other.mcap").open("wb") as file:
            show("mcap add_message, 100 bytes", timed(count, mcap_writer(file)))
        with Busy():
            show("nothing, next to a thread", timed(count // 4, lambda: None))
            show("append, next to a thread", timed(count // 4, lambda: a.append(RECORD)))
        lost = sum(account.lost.records for account in recorder.ledger().values())
        recorder.flush()
    print(f"lost: {lost} records")


def read(steadyio: Any, folder: Path) -> None:
    """Messages a second, ours and the official package's, from the same segments."""
    begin = perf_counter_ns()
    count = sum(1 for _ in steadyio.read(folder))
    ours_s = (perf_counter_ns() - begin) / 1e9
    begin = perf_counter_ns()
    theirs = 0
    for path in sorted(folder.glob("*.mcap")):
        with path.open("rb") as stream:
            theirs += sum(1 for _ in make_reader(stream).iter_messages())
    theirs_s = (perf_counter_ns() - begin) / 1e9
    print(
        f"reading: {count} messages, {count / ours_s:.0f}/s; "
        f"the mcap package {theirs}, {theirs / theirs_s:.0f}/s"
    )


def main() -> None:
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    small = parser.parse_args().small
    steadyio = installed(small)
    with tempfile.TemporaryDirectory(dir=BUILD / "bench") as name:
        folder = Path(name) / "recording"
        append(steadyio, folder, 2_000 if small else 400_000)
        read(steadyio, folder)


if __name__ == "__main__":
    main()
