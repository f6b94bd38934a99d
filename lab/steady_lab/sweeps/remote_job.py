# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot on a worker: its inputs, its results, and its work in between."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from distributed import Worker, get_worker

from steady_lab.errors import LabError
from steady_lab.sweeps.bundle import (
    copy_into,
    lab_digest,
    names_below,
    pack_bytes,
    unpack_bytes,
)
from steady_lab.sweeps.fetch import obtain
from steady_lab.targets.target import BootError, BootRequest, BootResult
from steady_lab.targets.uml_guest import UmlGuest


@dataclass(frozen=True)
class RemoteJob:
    """`parts` are digests by name; `inputs` are the work folder's small files, `large` the rest.

    `lab` is the digest of the client's lab.
    """

    lab: str
    guest: UmlGuest
    request: BootRequest
    parts: Mapping[str, str]
    inputs: bytes
    large: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The outcome of a boot; `files` are those of its work folder."""

    result: BootResult | None
    error: str
    files: bytes


class _Unwanted:
    """Set once no client waits for this task: its client was interrupted, or has left."""

    def __init__(self, worker: Worker, key: str) -> None:
        self._worker, self._key = worker, key

    def is_set(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state in ("cancelled", "released", "forgotten")


def run_remote_job(job: RemoteJob) -> Outcome:
    """Boot on this worker, with what its cache lacks fetched first; Dask calls it.

    A boot that fails is an outcome; what raises is the machine's fault, and tried elsewhere.
    """
    worker = get_worker()
    if job.lab != lab_digest():
        raise LabError(
            f"the worker {worker.address} has the lab {lab_digest()}, the sweep {job.lab}: "
            "install the same steady-lab on both"
        )
    places = {name: obtain(worker, digest) for name, digest in job.parts.items()}
    with tempfile.TemporaryDirectory(dir=worker.local_directory, prefix="boot-") as folder:
        work = Path(folder)
        unpack_bytes(job.inputs, work)
        for digest in job.large:
            copy_into(obtain(worker, digest), work)
        return _boot(job, places, work, _Unwanted(worker, str(worker.get_current_task())))


def _boot(job: RemoteJob, places: Mapping[str, Path], work: Path, unwanted: _Unwanted) -> Outcome:
    given = _states(work)
    request = replace(job.request, work=work, cancelled=unwanted)
    result, error = None, ""
    try:
        result = job.guest.at(places).boot(request, _say)
    except BootError as failed:
        error = str(failed).replace(str(work), str(job.request.work))
    left = [name for name, state in _states(work).items() if given.get(name) != state]
    return Outcome(result, error, pack_bytes(work, left))


def _states(work: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times of all but large inputs: the guest's changes of them stay behind."""
    found = {name: (work / name).lstat() for name in names_below(work)}
    return {name: (status.st_size, status.st_mtime_ns) for name, status in found.items()}


def _say(finding: str) -> None:
    print(f"steady-lab: {finding}", file=sys.stderr, flush=True)
