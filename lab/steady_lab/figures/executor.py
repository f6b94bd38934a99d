# SPDX-License-Identifier: MIT OR Apache-2.0
"""What runs many boots: threads of this process, or, behind the same interface, other machines.

For the latter see sweeps/.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from steady_lab.figures.boot import Boot, run_boot
from steady_lab.figures.boot_board import BootBoard

REDRAW_INTERVAL_S = 0.5


class Executor(Protocol):
    """Prepares each boot, boots it somewhere, and has it keep its outcome."""

    @property
    def jobs(self) -> int:
        """Return how many boots run at a time."""

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        """Run all boots, begun in this order; tell the board of each that starts and ends.

        After the first failure no further boot is started; those running may finish, as their
        results are good and kept. Raises the BootFailedError of the first that fails,
        KeyboardInterrupt after ending the guests.
        """


@dataclass(frozen=True)
class LocalPool:
    """Threads of this process, each with one guest at a time."""

    jobs: int

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        """Run them here."""
        cancelled, stopping = threading.Event(), threading.Event()

        def work(boot: Boot) -> None:
            if stopping.is_set():
                return
            board.started(boot)
            try:
                board.finished(boot, run_boot(boot, cancelled))
            except BaseException:
                stopping.set()
                raise

        with ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(work, boot) for boot in boots]
            try:
                _watch(futures, board)
            except KeyboardInterrupt:
                stopping.set()
                cancelled.set()
                raise
        for future in futures:
            future.result()


def _watch(futures: list[Future[None]], board: BootBoard) -> None:
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=REDRAW_INTERVAL_S, return_when=FIRST_COMPLETED)
        board.redraw()
