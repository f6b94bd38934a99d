# SPDX-License-Identifier: MIT OR Apache-2.0
"""The option `--on` of commands that run many boots, and the executor that it asks for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steady_lab.errors import LabError
from steady_lab.figures.executor import Executor, LocalPool


def add_on_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--on`."""
    parser.add_argument(
        "--on",
        metavar="dask://HOST:PORT",
        type=_scheduler,
        help="boot on the workers of this Dask scheduler, one boot per worker thread at a time",
    )


def _scheduler(text: str) -> str:
    """Return the address as Dask writes it."""
    found = re.fullmatch(r"(?:dask|tcp)://([^\s/]+:\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} must be dask://HOST:PORT, or tcp://HOST:PORT")
    return f"tcp://{found.group(1)}"


@contextmanager
def executor_on(scheduler: str | None) -> Iterator[Callable[[int], Executor]]:
    """Yield a maker of executors for N jobs: on this machine, or on a scheduler's workers."""
    if scheduler is None:
        yield LocalPool
        return
    try:
        from steady_lab.sweeps.dask_executor import DaskExecutor
    except ImportError as error:
        raise LabError(
            f"--on {scheduler}: {error.name} is missing: install steady-lab[sweeps]"
        ) from error
    executor = DaskExecutor(scheduler)
    try:
        yield lambda _jobs: executor
    finally:
        executor.close()
