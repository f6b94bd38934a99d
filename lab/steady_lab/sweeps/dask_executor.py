# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots on the workers of a Dask scheduler: as many at a time as they have threads.

Dask gives them out, moves their inputs between machines, and gives a boot to another worker when
one dies. Here inputs are packed, boots prepared a few ahead of the workers, and outcomes kept.
`commands/executors.py` makes the executor for `--on`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import io
import os
import queue
import shutil
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard
from distributed import Client, Future, Worker, get_worker

from steady_lab.errors import LabError
from steady_lab.figures.boot import Boot, failure
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.executor import REDRAW_INTERVAL_S
from steady_lab.paths import cache_dir
from steady_lab.targets.target import BootError, BootRequest, BootResult, Part
from steady_lab.targets.uml import Uml
from steady_lab.targets.uml_guest import UmlGuest

CONNECT_TIMEOUT_S = 5
# A failure that is not the boot's fault is retried on this many further machines.
RETRIES = 2
# A boot's larger inputs, such as a card's image, are sent once.
INPUT_BYTES_MAX = 1 << 20
# Boots prepared ahead, per thread of the workers: a thread that is done has its next one there.
AHEAD = 0.25
DIGEST_CHARS = 32
ZSTD_LEVEL = 3


@dataclass(frozen=True)
class RemoteJob:
    """A boot for a worker: `inputs` is the archive of its work folder's small files, `lab` the
    digest of the client's lab.
    """

    lab: str
    guest: UmlGuest
    request: BootRequest
    inputs: bytes


@dataclass(frozen=True)
class Outcome:
    """The outcome of a boot; `files` are those of its work folder."""

    result: BootResult | None
    error: str
    files: bytes


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
        self._parts = SentParts(self._client)
        print(f"Dask's dashboard: {self._client.dashboard_link}", file=sys.stderr)

    @property
    def jobs(self) -> int:
        """Return how many threads the workers have now."""
        return max(1, int(sum(self._client.nthreads().values())))

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        """Run them there, as `Executor` says."""
        sweep = _Sweep(self._client, self._parts, board)
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


class SentParts:
    """The archives of guests' parts, which the scheduler keeps for every worker."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sent: dict[object, Mapping[str, Future[bytes]]] = {}
        self._large: dict[bytes, Future[bytes]] = {}

    def of(self, guest: UmlGuest, modules: Iterable[str]) -> Mapping[str, Future[bytes]]:
        """Return the archives of a guest's parts, by name."""
        # Boots of one kernel share them, and packing them takes seconds.
        same = (guest.kernel.tree, guest.root, guest.project, tuple(modules))
        if same not in self._sent:
            self._sent[same] = {part.name: self._send(part) for part in guest.parts()}
        return self._sent[same]

    def large(self, work: Path, names: Iterable[str]) -> list[Future[bytes]]:
        """Return the archives of a boot's large inputs."""
        files = [(_sha256(work / name), Part(Path(name).name, work, (name,))) for name in names]
        for digest, part in files:
            if digest not in self._large:
                self._large[digest] = self._send(part)
        return [self._large[digest] for digest, _ in files]

    def _send(self, part: Part) -> Future[bytes]:
        """A task that returns the archive, and not scattered data: Dask runs it again on another
        worker if those that have the data die.
        """
        names = _with_folders(part.files) if part.files else names_below(part.folder)
        archive = pack(part.folder, names)
        key = f"{part.name}-{hashlib.sha256(archive).hexdigest()[:DIGEST_CHARS]}"
        print(f"sent {part.name}, {len(archive) / 1e6:.1f} MB", file=sys.stderr)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self._client.submit(bytes, archive, key=key)


class _Sweep:
    """Boots that Dask has and has not returned."""

    def __init__(self, client: Client, parts: SentParts, board: BootBoard) -> None:
        self.failures: list[LabError] = []
        self._client, self._parts, self._board = client, parts, board
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
        job, names = remote_job_of(boot)
        parts = dict(self._parts.of(job.guest, boot.request.modules))
        large = self._parts.large(job.request.work, names)
        # Named by its content: what several clients want at a time runs once.
        future = self._client.submit(
            run_remote_job, job, parts, large, key=f"boot-{boot.key}", retries=RETRIES
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
        unpack(outcome.files, boot.request.work)
        boot.keep(outcome.result or BootError(outcome.error))
        return outcome.result.wall_s if outcome.result else 0.0


def remote_job_of(boot: Boot) -> tuple[RemoteJob, list[str]]:
    """Return a worker's input for a prepared boot, and the names of its large inputs."""
    if not isinstance(boot.target, Uml):
        raise LabError(f"{boot.label}: only User Mode Linux boots on other machines")
    work = boot.request.work.absolute()
    names = names_below(work)
    large = [name for name in names if (work / name).lstat().st_size > INPUT_BYTES_MAX]
    job = RemoteJob(
        lab=lab_digest(),
        guest=boot.target.guest(boot.request),
        request=replace(boot.request, work=work),
        inputs=pack(work, (name for name in names if name not in large)),
    )
    return job, large


class _Unwanted:
    """Set once no client waits for this task: its client was interrupted, or has left."""

    def __init__(self, worker: Worker, key: str) -> None:
        self._worker, self._key = worker, key

    def is_set(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state in ("cancelled", "released", "forgotten")


def run_remote_job(job: RemoteJob, parts: Mapping[str, bytes], large: list[bytes]) -> Outcome:
    """Boot on this worker; Dask calls it, with the archives of the guest's parts by name.

    A boot that fails is an outcome; what raises is the machine's fault, and tried elsewhere.
    """
    worker = get_worker()
    if job.lab != lab_digest():
        raise LabError(
            f"the worker {worker.address} has the lab {lab_digest()}, the sweep {job.lab}: "
            "install the same steady-lab on both"
        )
    places = {name: unpacked(archive) for name, archive in parts.items()}
    with tempfile.TemporaryDirectory(dir=worker.local_directory, prefix="boot-") as folder:
        work = Path(folder)
        unpack(job.inputs, work)
        for archive in large:
            shutil.copytree(unpacked(archive), work, dirs_exist_ok=True)
        return _boot(job, places, work, _Unwanted(worker, str(worker.get_current_task())))


def _boot(job: RemoteJob, places: Mapping[str, Path], work: Path, unwanted: _Unwanted) -> Outcome:
    given = _states(work)
    kept_here = {name for name, (size, _) in given.items() if size > INPUT_BYTES_MAX}
    request = replace(job.request, work=work, cancelled=unwanted)
    result, error = None, ""
    try:
        result = job.guest.at(places).boot(request, _say)
    except BootError as failed:
        error = str(failed).replace(str(work), str(job.request.work))
    changed = [name for name, state in _states(work).items() if given.get(name) != state]
    left = [name for name in changed if name not in kept_here]
    return Outcome(result, error, pack(work, left))


def _states(work: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times. Changes of large inputs stay behind."""
    found = {name: (work / name).lstat() for name in names_below(work)}
    return {name: (status.st_size, status.st_mtime_ns) for name, status in found.items()}


def _say(finding: str) -> None:
    print(f"steady-lab: {finding}", file=sys.stderr, flush=True)


def unpacked(archive: bytes) -> Path:
    """Return the folder of this machine's cache with an archive's contents."""
    bundles = cache_dir() / "bundles"
    bundles.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(archive).hexdigest()[:DIGEST_CHARS]
    # Only one thread or process unpacks it. What fails leaves nothing under the final name.
    with (bundles / f".{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (bundles / digest).is_dir():
            with tempfile.TemporaryDirectory(dir=bundles, prefix=".new-") as folder:
                unpack(archive, Path(folder, digest))
                Path(folder, digest).rename(bundles / digest)
    return bundles / digest


def _sha256(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def names_below(folder: Path) -> list[str]:
    """Return everything in a folder, folders before their contents."""
    found = (
        str(Path(parent, name).relative_to(folder))
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    return sorted(found)


def _with_folders(files: Iterable[str]) -> list[str]:
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    return sorted({*folders, *files})


def pack(folder: Path, names: Iterable[str]) -> bytes:
    """Return files of a folder as one archive: the same bytes for the same files and times."""
    stream = io.BytesIO()
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    with (
        compressor.stream_writer(stream, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|") as packed,
    ):
        for name in names:
            packed.add(folder / name, name, recursive=False, filter=_plain)
    return stream.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(archive: bytes, folder: Path) -> None:
    """Undo `pack`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        zstandard.ZstdDecompressor().stream_reader(archive) as stream,
        tarfile.open(fileobj=stream, mode="r|") as packed,
    ):
        # Python 3.11.2, which is Debian 12's, has no filters. Links of a root are absolute.
        packed.extraction_filter = getattr(tarfile, "tar_filter", None)
        packed.extractall(folder)


@functools.cache
def lab_digest() -> str:
    """Return the hash of this lab's own Python, which client and workers must share."""
    home = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(f"{path.relative_to(home)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
