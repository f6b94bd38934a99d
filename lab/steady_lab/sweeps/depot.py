# SPDX-License-Identifier: MIT OR Apache-2.0
"""The holders of each bundle, and which of them serves a request: a plugin of Dask's scheduler.

The scheduler's machine has every bundle of a sweep; each worker that has fetched one gives it on,
so their number doubles. A machine serves few at a time: the others wait instead of sharing its
bandwidth, and so become sources themselves soon.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributed import Scheduler, SchedulerPlugin, Worker, WorkerPlugin

from steady_lab.sweeps.bundle import archive, bundles

PIECE_BYTES = 4 << 20
SERVED_MAX = 2
SCHEDULER = ""  # the source that is no worker


async def piece_of(digest: str, offset: int) -> bytes:
    """Return a piece of an archive of this machine; empty behind its end."""
    with archive(digest).open("rb") as stream:
        stream.seek(offset)
        return stream.read(PIECE_BYTES)


class Depot(SchedulerPlugin):
    """Answers clients that bring bundles and workers that look for them."""

    name = "steady-depot"
    idempotent = True

    def __init__(self) -> None:
        self._sources: dict[str, dict[str, int]] = {}  # by digest: how many each serves

    async def start(self, scheduler: Scheduler) -> None:
        """Register the scheduler's handlers; Dask calls it."""
        scheduler.handlers |= {
            "steady_has": self.has,
            "steady_bring": self.bring,
            "steady_piece": piece_of,
            "steady_source": self.source,
            "steady_fetched": self.fetched,
        }

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        """Forget a source that has left; Dask calls it."""
        for sources in self._sources.values():
            sources.pop(worker, None)

    async def has(self, digest: str) -> bool:
        """Whether the scheduler's machine has it; from now on it gives it out."""
        found = archive(digest).is_file()
        if found:
            self._sources.setdefault(digest, {SCHEDULER: 0})
        return found

    async def bring(self, digest: str, sender: str, offset: int, data: bytes, last: bool) -> None:
        """Take a piece from a client; `sender` distinguishes clients that send the same bundle."""
        bundles().mkdir(parents=True, exist_ok=True)
        path = bundles() / f".{digest}.{Path(sender).name}"
        with path.open("r+b" if offset else "wb") as stream:
            stream.seek(offset)
            stream.write(data)
        if last:
            path.rename(archive(digest))

    async def source(self, digest: str) -> str | None:
        """Return a source for a request, and count it; None if all sources are busy."""
        sources = self._sources.get(digest, {})
        address = min(sources, key=lambda one: sources[one], default=None)
        if address is None or sources[address] >= SERVED_MAX:
            return None
        sources[address] += 1
        return address

    async def fetched(self, digest: str, source: str, worker: str | None) -> None:
        """Note that a transfer has ended; `worker` is a further source, if it succeeded."""
        sources = self._sources.get(digest, {})
        if source in sources:
            sources[source] -= 1
        if worker:
            sources.setdefault(worker, 0)


class Porter(WorkerPlugin):
    """Lets other workers read the bundles that this one has."""

    name = "steady-porter"
    idempotent = True

    def setup(self, worker: Worker) -> None:
        """Register the worker's handlers; Dask calls it."""
        worker.handlers["steady_piece"] = piece_of
