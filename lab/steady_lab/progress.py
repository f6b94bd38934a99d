# SPDX-License-Identifier: MIT OR Apache-2.0
"""One line of progress: redrawn in place on a terminal, printed now and then elsewhere."""

import sys
import time
from typing import TextIO

PLAIN_INTERVAL_S = 15.0
TERMINAL_INTERVAL_S = 0.2


class Progress:
    """Shows `label: done/total, elapsed, about N s left` on standard error.

    Nothing is shown for work that ends within `quiet_s` seconds. A `total` of 0 is unknown.
    """

    def __init__(
        self, label: str, total: int, *, stream: TextIO | None = None, quiet_s: float = 2.0
    ) -> None:
        self.label = label
        self.total = total
        self.stream = stream if stream is not None else sys.stderr
        self.start_s = time.monotonic()
        self.shown_s = self.start_s + quiet_s - self._interval_s()
        self.visible = False

    def _interval_s(self) -> float:
        return TERMINAL_INTERVAL_S if self.stream.isatty() else PLAIN_INTERVAL_S

    def update(self, done: int, detail: str = "") -> None:
        """Say how much is done; prints only when it is time to."""
        now_s = time.monotonic()
        if now_s - self.shown_s < self._interval_s():
            return
        self.shown_s = now_s
        self.visible = True
        self._print(self._line(done, now_s - self.start_s, detail))

    def _line(self, done: int, elapsed_s: float, detail: str) -> str:
        left, count = "", f"{done}"
        if self.total:
            done = min(done, self.total)
            count = f"{done}/{self.total}"
        if 0 < done < self.total:
            left = f", about {elapsed_s * (self.total - done) / done:.0f} s left"
        tail = f"  {detail}" if detail else ""
        return f"{self.label}: {count}, {elapsed_s:.0f} s{left}{tail}"

    def _print(self, line: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{line[:118]}")
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def finish(self, message: str) -> None:
        """Replace the progress line by a closing message."""
        if self.stream.isatty() and self.visible:
            self.stream.write("\r\x1b[K")
        self.stream.write(f"{message}\n")
        self.stream.flush()
