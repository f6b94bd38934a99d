# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run planned boots side by side: progress shown, finished ones kept, Ctrl-C ends the guests.

After the first failure no further boot is started; those running may finish, as their
results are good and kept.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TextIO

from steady_lab.errors import LabError
from steady_lab.figures.figure_boot import FigureBoot, expected_wall_s, run_boot

REDRAW_INTERVAL_S = 0.5
TERMINAL_COLUMNS = 118


class BootFailedError(LabError):
    """A boot that failed, with the command that replays it."""


class BootBoard:
    """Progress of a pool: one redrawn line on a terminal, one line per finished boot elsewhere."""

    def __init__(self, boots: Sequence[FigureBoot], jobs: int, stream: TextIO) -> None:
        self._stream = stream
        self._jobs = jobs
        self._start_s = time.monotonic()
        self._waiting = {boot.label: expected_wall_s(boot) for boot in boots}
        self._running: dict[str, float] = {}
        self._walls_s: list[float] = []
        self._total = len(boots)
        self._lock = threading.Lock()

    def started(self, boot: FigureBoot) -> None:
        """Note that a worker took this boot."""
        with self._lock:
            self._running[boot.label] = time.monotonic()

    def finished(self, boot: FigureBoot, wall_s: float) -> None:
        """Note and print that a boot is done."""
        with self._lock:
            self._running.pop(boot.label, None)
            self._waiting.pop(boot.label, None)
            self._walls_s.append(wall_s)
        done = f"[{len(self._walls_s)}/{self._total}]"
        self._clear()
        print(f"{done} {boot.label}  {wall_s:.1f} s{self._left()}", file=self._stream, flush=True)

    def redraw(self) -> None:
        """Draw the line of running boots, on a terminal only."""
        if not self._stream.isatty():
            return
        with self._lock:
            now_s = time.monotonic()
            running = ", ".join(f"{k} {now_s - t:.0f} s" for k, t in self._running.items())
        elapsed = _clock(time.monotonic() - self._start_s)
        head = f"{len(self._walls_s)}/{self._total} boots, {elapsed} elapsed{self._left()}: "
        self._clear()
        self._stream.write((head + running)[:TERMINAL_COLUMNS])
        self._stream.flush()

    def close(self) -> None:
        """Remove the redrawn line."""
        self._clear()
        self._stream.flush()

    def _clear(self) -> None:
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")

    def _left(self) -> str:
        """Return the estimate: last run's wall times where known, else the mean so far."""
        with self._lock:
            known = [*self._walls_s, *(wall for wall in self._waiting.values() if wall)]
            if not known or not self._waiting:
                return ""
            mean_s = sum(known) / len(known)
            now_s = time.monotonic()
            left_s = sum(wall or mean_s for wall in self._waiting.values())
            left_s -= sum(
                min(now_s - start_s, self._waiting[label] or mean_s)
                for label, start_s in self._running.items()
            )
        return f", about {_clock(left_s / self._jobs)} left"


def run_all(boots: Sequence[FigureBoot], jobs: int) -> None:
    """Run all boots, `jobs` at a time, longest first where last time's duration is known.

    Raises BootFailedError for the first that fails, KeyboardInterrupt after ending the guests.
    """
    board = BootBoard(boots, jobs, sys.stderr)
    cancelled, stopping = threading.Event(), threading.Event()

    def work(boot: FigureBoot) -> None:
        if stopping.is_set():
            return
        board.started(boot)
        try:
            board.finished(boot, run_boot(boot, cancelled))
        except LabError as error:
            stopping.set()
            raise BootFailedError(f"{boot.label} failed: {error}\nreplay: {boot.replay}") from error
        except BaseException:
            stopping.set()
            raise

    ordered = sorted(boots, key=lambda boot: -(expected_wall_s(boot) or float("inf")))
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, boot) for boot in ordered]
        try:
            _watch(futures, board)
        except KeyboardInterrupt:
            stopping.set()
            cancelled.set()
            raise
        finally:
            board.close()
    for future in futures:
        future.result()


def _watch(futures: list[Future[None]], board: BootBoard) -> None:
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=REDRAW_INTERVAL_S, return_when=FIRST_COMPLETED)
        board.redraw()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
