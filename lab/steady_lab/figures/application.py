# SPDX-License-Identifier: MIT OR Apache-2.0
"""Applications: real programs as the real-time process, where fio would only imitate one.

An application is a folder experiments/applications/NAME with two programs. `prepare OUT` runs
once in the guests' root. It makes OUT/card.img (the contents of the emulated card) and the files
that `run` needs besides the folder's C files, which become libraries to preload. `run EVENTS
SEED BACKGROUND` measures in the guest. A spec next to the folders (schema
"steadyio.application/1", docs/spec/application-1.md) names folder and variants; a figure refers
to it as its workload.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.paths import PROJECT, cache_dir
from steady_lab.root.compiler import compile_inside
from steady_lab.root.root import guest_root
from steady_lab.root.sandbox import Place, build_sandbox
from steady_lab.toml_table import NAME_PATTERN, Table

APPLICATIONS = PROJECT / "experiments" / "applications"
CARD_IMAGE = "card.img"
# What `run` leaves in the work folder, in the words of `steady with --class`.
CLASSES = ("rt=sysbench:sysbench.txt", "bg=dd,op=copy,bs_kib=512:dd-*.txt")
EVENTS_MAX = 1_000_000
PREPARE_TIMEOUT_S = 600
LIBRARY_FLAGS = ("-O2", "-Wall", "-Werror", "-shared", "-fPIC")
FOLDER, OUT = "/run/steadyio/application", "/run/steadyio/out"


@dataclass(frozen=True)
class Application:
    """The spec of an application."""

    name: str
    events: int
    background: str

    @property
    def folder(self) -> Path:
        """Where `prepare` and `run` are."""
        return APPLICATIONS / self.name


@dataclass(frozen=True)
class Prepared:
    """An application's files for the guest, and the hash of all that its results depend on."""

    files: list[Path]
    sha256: str


def take_application(spec: Table) -> Application:
    """Read [application] and [length]; raises SpecError, also when there is no such application."""
    length, table = spec.table("length"), spec.table("application")
    application = Application(
        name=table.text("name", NAME_PATTERN),
        events=length.integer("events", 1, EVENTS_MAX),
        background=table.text("background", NAME_PATTERN),
    )
    if not all((application.folder / program).is_file() for program in ("prepare", "run")):
        known = ", ".join(sorted(path.parent.name for path in APPLICATIONS.glob("*/run")))
        raise table.fail("name", f"the name of a folder in {APPLICATIONS}: {known}")
    length.close()
    table.close()
    return application


def prepare(application: Application) -> Prepared:
    """Make the application's files, or find them in the cache; raises LabError if that fails.

    They are kept under the hash of the application's folder and of the guests' root. The image of
    a database is not the same bytes twice, so results are comparable to the byte as long as the
    cache holds it.
    """
    key = _key(application)
    home = cache_dir() / "applications"
    home.mkdir(parents=True, exist_ok=True)
    kept = home / f"{application.name}-{key[:16]}"
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "prepared.json").is_file():
            _make(application, kept)
    hashes = json.loads((kept / "prepared.json").read_text(encoding="utf-8"))
    files = [kept / name for name in sorted(hashes)]
    text = json.dumps([key, hashes], sort_keys=True)
    return Prepared(files, hashlib.sha256(text.encode()).hexdigest())


def _key(application: Application) -> str:
    sources = sorted(path for path in application.folder.iterdir() if path.is_file())
    hashes = [(path.name, sha256_file(path)) for path in sources]
    return hashlib.sha256(json.dumps([guest_root().key, hashes]).encode()).hexdigest()


def _make(application: Application, kept: Path) -> None:
    """Run `prepare`; `kept` is complete or does not exist."""
    unfinished = kept.with_name(kept.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    print(f"preparing {application.name}, once", file=sys.stderr)
    for source in application.folder.glob("*.c"):
        compile_inside([source], unfinished / f"{source.stem}.so", LIBRARY_FLAGS)
    places = [Place(application.folder, FOLDER), Place(unfinished, OUT, writable=True)]
    try:
        done = subprocess.run(
            [*build_sandbox(guest_root().path, places), f"{FOLDER}/prepare", OUT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PREPARE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{application.name}: prepare took over {PREPARE_TIMEOUT_S} s") from error
    if done.returncode != 0:
        said = "\n".join(done.stdout.splitlines()[-30:])
        raise LabError(f"{application.name}: prepare ended with status {done.returncode}\n{said}")
    hashes = {path.name: sha256_file(path) for path in unfinished.iterdir()}
    if CARD_IMAGE not in hashes:
        raise LabError(f"{application.name}: prepare made no {CARD_IMAGE}")
    (unfinished / "prepared.json").write_text(json.dumps(hashes), encoding="utf-8")
    unfinished.rename(kept)


def give(prepared: Prepared, work: Path) -> None:
    """Copy the files to a guest's work folder, where the card's contents will change."""
    for path in prepared.files:
        command = ["cp", "--sparse=always", "--reflink=auto", str(path), str(work)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def take_back(prepared: Prepared, work: Path) -> None:
    """Remove the copies, which are large and of no further use."""
    for path in prepared.files:
        (work / path.name).unlink(missing_ok=True)
