# SPDX-License-Identifier: MIT OR Apache-2.0
"""Progress of boots that run side by side: which do, which are done, and how long it will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TextIO

from steady_lab.figures.boot import Boot

TERMINAL_COLUMNS = 118


class BootBoard:
    """One redrawn line on a terminal, one line per finished boot elsewhere."""

    def __init__(self, boots: Sequence[Boot], jobs: int, stream: TextIO) -> None:
        self._stream = stream
        self._jobs = jobs
        self._start_s = time.monotonic()
        self._waiting = {boot.label: boot.expected_wall_s() for boot in boots}
        self._running: dict[str, float] = {}
        self._walls_s: list[float] = []
        self._total = len(boots)
        self._lock = threading.Lock()

    def started(self, boot: Boot) -> None:
        """Note that a worker took this boot."""
        with self._lock:
            self._running[boot.label] = time.monotonic()

    def finished(self, boot: Boot, wall_s: float) -> None:
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


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
