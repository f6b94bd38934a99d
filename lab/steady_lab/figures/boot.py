# SPDX-License-Identifier: MIT OR Apache-2.0
"""The unit that executors run: a boot that knows its inputs, and keeps its outcome."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Protocol

from steady_lab.errors import LabError
from steady_lab.targets.target import BootError, BootRequest, BootResult, Target


class BootFailedError(LabError):
    """A boot that failed, with the command that replays it."""


class Boot(Protocol):
    """A planned boot. It can be pickled, for another process."""

    @property
    def label(self) -> str:
        """Return how progress and errors name it."""

    @property
    def replay(self) -> str:
        """Return the command that repeats this boot alone, with the same result."""

    @property
    def key(self) -> str:
        """Return the hash of all that decides its result."""

    @property
    def target(self) -> Target:
        """Return what boots."""

    @property
    def request(self) -> BootRequest:
        """Return the request to the target; its work folder keeps the outcome."""

    def expected_wall_s(self) -> float | None:
        """Return how long it may take; None if unknown."""

    def prepare(self) -> None:
        """Prepare the work folder with the guest's inputs, and nothing else."""

    def keep(self, outcome: BootResult | BootError) -> None:
        """Judge the guest's files in the work folder, and keep them; raises LabError."""


def run_boot(boot: Boot, cancelled: threading.Event | None = None) -> float:
    """Boot it here, and keep its outcome; return the wall time in seconds.

    Raises BootFailedError when the boot's outcome is not good, and when `cancelled` is set
    meanwhile.
    """
    try:
        boot.prepare()
        outcome = _outcome(boot, cancelled)
        if cancelled and cancelled.is_set():
            raise BootError("cancelled")
        boot.keep(outcome)
    except LabError as error:
        raise failure(boot, str(error)) from error
    return outcome.wall_s if isinstance(outcome, BootResult) else 0.0


def _outcome(boot: Boot, cancelled: threading.Event | None) -> BootResult | BootError:
    try:
        return boot.target.boot(replace(boot.request, cancelled=cancelled))
    except BootError as error:
        return error


def failure(boot: Boot, why: str) -> BootFailedError:
    """Return the error that ends a sweep."""
    return BootFailedError(f"{boot.label} failed: {why}\nreplay: {boot.replay}")
