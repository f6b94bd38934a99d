# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots on the workers of a Dask scheduler: as many at a time as they have threads.

Dask gives them out, and gives a boot to another worker when one dies. Here boots are prepared, a
few ahead of the workers, and their outcomes kept, as those of the local pool are.
"""

from __future__ import annotations

import contextlib
import queue
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from distributed import Client, Future

from steady_lab.errors import LabError
from steady_lab.figures.boot import Boot, failure
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.executor import REDRAW_INTERVAL_S
from steady_lab.sweeps.bundle import lab_digest, names_below, pack_bytes, unpack_bytes
from steady_lab.sweeps.depot import Depot, Porter
from steady_lab.sweeps.remote_job import Outcome, RemoteJob, run_remote_job
from steady_lab.sweeps.ship import Shipping
from steady_lab.targets.target import BootError, Part
from steady_lab.targets.uml import Uml

CONNECT_TIMEOUT_S = 5
# Larger inputs of a boot are shipped once per machine, as bundles.
INPUT_BYTES_MAX = 1 << 20
# A failure that is not the boot's fault is retried on this many further machines.
RETRIES = 2
# Boots prepared ahead, per thread of the workers: a thread that is done has its next one there.
AHEAD = 0.25


class DaskExecutor:
    """The workers that a scheduler at `address`, tcp://HOST:PORT, has or gets meanwhile."""

    def __init__(self, address: str) -> None:
        """Raises LabError when nothing answers there."""
        try:
            self._client = Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        except OSError as error:
            raise LabError(
                f"--on {address}: no Dask scheduler answers there ({error}): start one with "
                "`dask scheduler`, and workers with `dask worker`"
            ) from error
        self._client.register_plugin(Depot())
        self._client.register_plugin(Porter())
        self._shipping = Shipping(self._client)
        print(f"Dask's dashboard: {self._client.dashboard_link}", file=sys.stderr)

    @property
    def jobs(self) -> int:
        """Return how many threads the workers have now."""
        return max(1, int(sum(self._client.nthreads().values())))

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        """Run them there, as `Executor` says."""
        sweep = _Sweep(self._client, self._shipping, board)
        try:
            sweep.run(iter(boots), lambda: int(self.jobs * (1 + AHEAD)) + 1)
        except BaseException:
            sweep.cancel()
            raise
        if sweep.failures:
            raise sweep.failures[0]

    def close(self) -> None:
        """Leave the scheduler."""
        self._client.close()


class _Sweep:
    """Boots that Dask has and has not returned."""

    def __init__(self, client: Client, shipping: Shipping, board: BootBoard) -> None:
        self.failures: list[LabError] = []
        self._client, self._shipping, self._board = client, shipping, board
        self._given: dict[Future[Outcome], Boot] = {}
        self._done: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()

    def run(self, boots: Iterator[Boot], given_max: Callable[[], int]) -> None:
        """Wait until all are back; after a failure none is started."""
        ended, most = False, given_max()
        while not ended or self._given:
            while not ended and len(self._given) < most:
                boot = None if self.failures else next(boots, None)
                ended = boot is None
                if boot:
                    self._give(boot)
            if self._take():
                most = given_max()  # workers come and go
            self._board.redraw()
            ended = ended or bool(self.failures)

    def cancel(self) -> None:
        """Cancel queued boots, and end the guests that run."""
        self._client.cancel(list(self._given))

    def _give(self, boot: Boot) -> None:
        boot.prepare()
        # Named by its content: what several clients want at a time runs once.
        future = self._client.submit(
            run_remote_job,
            remote_job_of(boot, self._shipping),
            key=f"boot-{boot.key}",
            retries=RETRIES,
        )
        self._given[future] = boot
        self._board.started(boot)
        future.add_done_callback(self._done.put)

    def _take(self) -> int:
        """Wait for a boot to come back, but not for long; keep the outcomes of all that did.

        Return how many did.
        """
        done = []
        with contextlib.suppress(queue.Empty):
            done.append(self._done.get(timeout=REDRAW_INTERVAL_S))
            while True:
                done.append(self._done.get_nowait())
        finished = [future for future in done if future.status == "finished"]
        outcomes = dict(zip(finished, self._client.gather(finished), strict=True))
        for future in done:
            boot = self._given.pop(future)
            try:
                self._board.finished(boot, self._keep(boot, future, outcomes.get(future)))
            except LabError as error:
                self.failures.append(failure(boot, str(error)))
        return len(done)

    def _keep(self, boot: Boot, future: Future[Outcome], outcome: Outcome | None) -> float:
        """Return the wall time; raises LabError if the boot failed, or every machine with it."""
        if outcome is None:
            why = future.exception() if future.status == "error" else future.status
            raise LabError(f"on the workers: {why}")
        unpack_bytes(outcome.files, boot.request.work)
        boot.keep(outcome.result or BootError(outcome.error))
        return outcome.result.wall_s if outcome.result else 0.0


def remote_job_of(boot: Boot, shipping: Shipping) -> RemoteJob:
    """Return a worker's input for a prepared boot, and send its parts to the scheduler."""
    if not isinstance(boot.target, Uml):
        raise LabError(f"{boot.label}: only User Mode Linux boots on other machines")
    work = boot.request.work
    names = names_below(work)
    sizes = {name: (work / name).lstat().st_size for name in names}
    large = [name for name in names if sizes[name] > INPUT_BYTES_MAX]
    guest = boot.target.guest(boot.request)
    return RemoteJob(
        lab=lab_digest(),
        guest=guest,
        request=replace(boot.request, work=work.absolute()),
        parts=shipping.parts(guest, boot.request),
        inputs=pack_bytes(work, (name for name in names if name not in large)),
        large=tuple(shipping.ship(Part(name, work, (name,))) for name in large),
    )
