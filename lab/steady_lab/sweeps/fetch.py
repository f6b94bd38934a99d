# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a worker gets a bundle that its machine's cache lacks, before its first boot with it."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from distributed import Worker
from distributed.utils import sync

from steady_lab.errors import LabError
from steady_lab.sweeps.bundle import archive, bundles, locked, unfinished, unpack
from steady_lab.sweeps.depot import SCHEDULER

RETRY_INTERVAL_S = 0.2
# From the first question on; a thousand machines have everything in far less.
WAIT_S_MAX = 1800.0


def obtain(worker: Worker, digest: str) -> Path:
    """Return the folder with these contents; called in the thread of a task.

    Raises LabError when no machine gives it.
    """
    with locked(digest):
        if not (bundles() / digest).is_dir() and not archive(digest).is_file():
            start_s = time.monotonic()
            with unfinished(archive(digest)) as path:
                source = sync(worker.loop, _fetch, worker, digest, path)
                size_mb = path.stat().st_size / 1e6
            took_s = time.monotonic() - start_s
            print(
                f"steady-lab: {size_mb:.1f} MB, {digest}, from {source} in {took_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )
        return unpack(digest)


async def _fetch(worker: Worker, digest: str, path: Path) -> str:
    """Return the machine that it came from."""
    start_s = time.monotonic()
    while time.monotonic() - start_s < WAIT_S_MAX:
        source = await worker.scheduler.steady_source(digest=digest)
        if source is None:
            await asyncio.sleep(RETRY_INTERVAL_S)
            continue
        arrived = False
        try:
            await _copy(worker, digest, source, path)
            arrived = True
            return source or "the scheduler"
        except OSError as error:
            print(f"steady-lab: {digest} from {source}: {error}", file=sys.stderr, flush=True)
        finally:
            taker = worker.address if arrived else None
            await worker.scheduler.steady_fetched(digest=digest, source=source, worker=taker)
    raise LabError(f"no machine sent {digest} within {WAIT_S_MAX:g} s: start the sweep again")


async def _copy(worker: Worker, digest: str, source: str, path: Path) -> None:
    giver = worker.scheduler if source == SCHEDULER else worker.rpc(source)
    with path.open("wb") as stream:
        while data := await giver.steady_piece(digest=digest, offset=stream.tell()):
            stream.write(data)
