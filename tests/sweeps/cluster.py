# SPDX-License-Identifier: MIT OR Apache-2.0
"""A scheduler and workers as Dask's own commands start them, each with a cache of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

DASK = Path(sys.executable).with_name("dask")
HOST = "127.0.0.1"
START_S_MAX = 60.0
LOOK_INTERVAL_S = 0.02


@dataclass(frozen=True)
class Worker:
    """`folder` has its log, its cache and the work folders of its boots."""

    process: subprocess.Popen[bytes]
    folder: Path

    def boots(self) -> list[Path]:
        """Guests that run here, or were running when it was killed."""
        return list(self.folder.glob("local/**/boot-*/.steady/kernel.log"))


@dataclass(frozen=True)
class Cluster:
    """`address` and `pid` are the scheduler's."""

    address: str
    pid: int
    workers: list[Worker]


def wait_until(what: str, told: object) -> None:
    """Until `told`, a function, says something; fails if it takes too long."""
    end_s = time.monotonic() + START_S_MAX
    assert callable(told)
    while not told():
        assert time.monotonic() < end_s, f"{what}: not within {START_S_MAX:g} s"
        time.sleep(LOOK_INTERVAL_S)


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of Dask with a log and a cache in `folder`."""
    folder.mkdir(parents=True)
    environment = os.environ | {"STEADYIO_CACHE": str(folder / "cache")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([DASK, *words], stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _found(log: Path, pattern: str) -> str:
    wait_until(f"{log}: {pattern}", lambda: re.search(pattern, log.read_text()))
    found = re.search(pattern, log.read_text())
    assert found
    return found.group(1)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A scheduler and workers of one thread each."""
    with ExitStack() as stack:
        where = ("--host", HOST, "--port", "0", "--no-dashboard")
        scheduler = stack.enter_context(started(folder / "scheduler", "scheduler", *where))
        address = _found(folder / "scheduler" / "log", rf"(tcp://{HOST}:\d+)")
        made = []
        for number in range(workers):
            home = folder / f"worker-{number}"
            local = ("--no-nanny", "--no-dashboard", "--local-directory", str(home / "local"))
            process = started(home, "worker", address, "--nthreads", "1", *local)
            made.append(Worker(stack.enter_context(process), home))
        for worker in made:
            _found(worker.folder / "log", r"(Registered to)")
        yield Cluster(address, scheduler.pid, made)
