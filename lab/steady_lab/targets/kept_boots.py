# SPDX-License-Identifier: MIT OR Apache-2.0
"""Replay a boot of User Mode Linux when nothing that it depends on has changed; used by tests.

A boot in virtual time depends on what decides it before the start (`Uml.identity()`, the lab's own
code, and the files of the work folder) and on the files of the clone that the guest uses. The
latter are recorded while it runs, by `lab/host/inputs.c`. A kept boot is replayed only if all of
them have the same content now, and those that were missing are still missing.

$STEADYIO_KEPT_BOOTS names the folder of one test. A boot is a candidate until the test has passed
(`settle()`), so a failure is never replayed, and two equal boots of one test both run. A full
disk keeps no boot and fails no test.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from steady_lab.hashes import sha256_file
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.guest_run import CONSOLE, INPUTS, KERNEL_LOG, PRIVATE
from steady_lab.targets.kernel_log import refuse_trouble
from steady_lab.targets.target import BootRequest, BootResult

# What the sandbox passes on of this machine.
PROCESSOR_VARIABLE = "GLIBC_TUNABLES"
FOLDER_VARIABLE = "STEADYIO_KEPT_BOOTS"
# Decides a boot, and no identity shows it.
LAB_CODE = ("lab/steady_lab/targets/*.py", "lab/steady_lab/root/sandbox.py")
# A larger work folder costs more to copy than the boot to repeat.
WORK_BYTES_MAX = 512 << 20
# For each boot of a test, this many results are kept: those of the last changes.
RESULTS_MAX = 2
# The boots of all tests, twice.
ALL_BYTES_MAX = 8 << 30
# Nothing more is kept on a disk with less space than this.
FREE_BYTES_MIN = 4 << 30
NOTE, WORK, CANDIDATE = "boot.json", "work", "candidate-"
REPLAYED, RAN = "replayed", "ran"


@dataclass(frozen=True)
class KeptBoots:
    """The boots that one test has passed with, in its `folder` of the cache."""

    folder: Path

    def boot(
        self, identity: Mapping[str, Any], request: BootRequest, run: Callable[[], BootResult]
    ) -> BootResult:
        """Replay the boot, or run it and keep it as a candidate; raises what `run` raises."""
        key = _key(identity, request.work)
        with _locked(self.folder):
            found = self._find(key)
            if found:
                return self._replay(found, request)
        _note(self.folder, RAN, key)
        start_ns = time.time_ns()
        list_file = request.work / PRIVATE / INPUTS
        result = run()
        inputs = _fingerprints(list_file, start_ns)
        if inputs is not None:
            self._keep(key, inputs, request.work, result)
        return result

    def _find(self, key: str) -> Path | None:
        for entry in sorted(self.folder.glob(f"{key}-*")):
            with suppress(OSError, ValueError):
                note = json.loads((entry / NOTE).read_text())
                if all(_fingerprint(path) == was for path, was in note["inputs"].items()):
                    return entry
        return None

    def _replay(self, entry: Path, request: BootRequest) -> BootResult:
        note = json.loads((entry / NOTE).read_text())
        _empty(request.work)
        _copy(entry / WORK, request.work)
        private = request.work / PRIVATE
        output, log = (
            (private / name).read_text(encoding="utf-8", errors="replace")
            for name in (CONSOLE, KERNEL_LOG)
        )
        os.utime(entry)
        _note(self.folder, REPLAYED, entry.name)
        refuse_trouble(log, f"kernel log: {private}/{KERNEL_LOG}")
        return BootResult(note["exit_status"], output, log, note["wall_s"])

    def _keep(self, key: str, inputs: Mapping[str, str], work: Path, result: BootResult) -> None:
        size = _disk_bytes(work)
        if size > WORK_BYTES_MAX or shutil.disk_usage(self.folder).free < size + FREE_BYTES_MIN:
            return
        candidate = self.folder / f"{CANDIDATE}{key}-{uuid.uuid4().hex[:8]}"
        note = {
            "inputs": inputs,
            "exit_status": result.exit_status,
            "wall_s": result.wall_s,
            "bytes": size,
        }
        try:
            candidate.mkdir(parents=True)
            _copy(work, candidate / WORK)
            (candidate / NOTE).write_text(json.dumps(note, indent=1) + "\n")
        except (OSError, subprocess.CalledProcessError):
            shutil.rmtree(candidate, ignore_errors=True)


def kept_boots() -> KeptBoots | None:
    """Return the running test's, None if nothing is kept."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return KeptBoots(Path(folder)) if folder else None


def begin(folder: Path) -> None:
    """Delete the files that an interrupted test has left in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        for name in (REPLAYED, RAN):
            (folder / name).unlink(missing_ok=True)
        for candidate in folder.glob(f"{CANDIDATE}*"):
            shutil.rmtree(candidate)


def used(folder: Path) -> tuple[int, int]:
    """Return how many boots of the running test were replayed, and how many ran."""
    return len(_noted(folder, REPLAYED)), len(_noted(folder, RAN))


def settle(folder: Path, passed: bool) -> None:
    """Keep a test's candidates if it passed, else drop all that it used."""
    with _locked(folder):
        replayed, ran = _noted(folder, REPLAYED), _noted(folder, RAN)
        if not passed:
            for name in replayed:
                shutil.rmtree(folder / name, ignore_errors=True)
        for candidate in folder.glob(f"{CANDIDATE}*"):
            if passed:
                candidate.rename(folder / candidate.name.removeprefix(CANDIDATE))
            else:
                shutil.rmtree(candidate)
        _forget_oldest(folder, RESULTS_MAX * (len(replayed) + len(ran)))


def limit(folders: Path, bytes_max: int = ALL_BYTES_MAX) -> None:
    """Delete the boots that were not used for the longest time, down to `bytes_max` in all."""
    boots = []
    for note in folders.glob(f"*/*/{NOTE}"):
        if not note.parent.name.startswith(CANDIDATE):
            with suppress(OSError, ValueError, KeyError):
                size = json.loads(note.read_text())["bytes"]
                boots.append((note.parent.stat().st_mtime_ns, note.parent, size))
    for _, entry, size in sorted(boots, reverse=True):
        bytes_max -= size
        if bytes_max < 0:
            with _locked(entry.parent):
                shutil.rmtree(entry, ignore_errors=True)


def _forget_oldest(folder: Path, kept_max: int) -> None:
    entries = [entry for entry in folder.iterdir() if entry.is_dir()]
    entries.sort(key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    for entry in entries[kept_max:]:
        shutil.rmtree(entry)


def _note(folder: Path, what: str, name: str) -> None:
    with (folder / what).open("a") as file:
        file.write(f"{name}\n")


def _noted(folder: Path, what: str) -> list[str]:
    try:
        return (folder / what).read_text().split()
    except FileNotFoundError:
        return []


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep out the same test of another clone."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _key(identity: Mapping[str, Any], work: Path) -> str:
    """Hash all that is known before the start."""
    files = {}
    if work.is_dir():
        for path in sorted(work.rglob("*")):
            relative = path.relative_to(work)
            if relative.parts[0] != PRIVATE:
                files[str(relative)] = _content(path)
    decides = {
        "identity": identity,
        "lab": _lab_code(),
        "processor": os.environ.get(PROCESSOR_VARIABLE),
        "work": files,
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


def _lab_code() -> dict[str, str]:
    paths = sorted(path for pattern in LAB_CODE for path in PROJECT.glob(pattern))
    return {str(path.relative_to(PROJECT)): _content(path) for path in paths}


def _fingerprints(list_file: Path, start_ns: int) -> dict[str, str] | None:
    """Return path -> fingerprint of the files that a guest used, None if that is uncertain.

    That is so where a file has changed since the start: the guest may have seen it before. An empty
    list is wrong: each guest loads its modules from the clone.
    """
    try:
        lines = list_file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    listed = {(line[0], line[2:].removeprefix(f"{GUEST_PROJECT}/").rstrip("/")) for line in lines}
    if not listed:
        return None
    paths = {f"{path}/" if how == "d" else path for how, path in listed}
    for path in paths:
        with suppress(OSError):
            if (PROJECT / path).lstat().st_mtime_ns >= start_ns and not (PROJECT / path).is_dir():
                return None
    return {path: _fingerprint(path) for path in sorted(paths)}


def _fingerprint(path: str) -> str:
    """Return the clone's state at `path`; for a folder its names, if the path ends with a slash."""
    place = PROJECT / path
    if path.endswith("/") and place.is_dir():
        names = "\0".join(sorted(one.name for one in place.iterdir()))
        return f"names {hashlib.sha256(names.encode()).hexdigest()}"
    return _content(place)


def _content(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return "missing"
    if stat.S_ISLNK(found.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(found.st_mode):
        return f"type {stat.S_IFMT(found.st_mode):o}"
    version = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return f"{found.st_mode & 0o777:o} {_hash(path, version)}"


@lru_cache(maxsize=100_000)
def _hash(path: Path, version: tuple[int, ...]) -> str:
    """Hash each version of a file once: the programs are large, and of nearly all boots."""
    return sha256_file(path)


def _disk_bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copy(source: Path, target: Path) -> None:
    """Copy the contents of a folder with times, links and holes."""
    target.mkdir(exist_ok=True)
    words = ["cp", "--archive", "--sparse=always", f"{source}/.", str(target)]
    subprocess.run(words, check=True, capture_output=True)
