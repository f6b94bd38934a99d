# SPDX-License-Identifier: MIT OR Apache-2.0
"""Take the verdict of a test from the cache if nothing that it reads has changed since it passed.

For tests that take long and have no boot that kept_boots.py could replay. Their mark names the
folders that they read: `pytestmark = pytest.mark.reads("lab", "kernel")`, or `reads(*SOURCES)`; or
files, such as those of a crate (crates.py). The tests' own folder, the shared files of tests/, and
this machine's processor, kernel and packages are always part of the key. A marked test that opens a
file of another folder, or runs `steady` and names neither it nor `device`, fails.

The key is taken at the session's start. Verdicts are kept at its end if the key is still the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from steady_lab.hashes import sha256_file
from steady_lab.paths import PROJECT, cache_dir

KEPT = cache_dir() / "tests" / "verdicts.json"
# For each test, the results of the last changes.
KEYS_MAX = 4
PACKAGES = Path("/var/lib/dpkg/status")
PROCESSOR = Path("/proc/cpuinfo")
SETTINGS = ("STEADY_", "STEADYIO_KERNEL_SOURCE")
# Programs that are built of a folder.
BUILT_OF = {f"build/bin/{name}": "device" for name in ("steady", "steady-guest", "steady-recipe")}
# All that a guest can depend on in which `steady` does not run: not the documents.
WITHOUT_STEADY = ("experiments", "kernel", "lab", "scripts", "tests")
# The same with our programs, as they are now: a test in `device` changes none of them.
SOURCES = (*WITHOUT_STEADY, *BUILT_OF)


def folders_of(item: pytest.Item) -> tuple[str, ...] | None:
    """Return the folders that a test's mark names, None if it has no mark."""
    mark = item.get_closest_marker("reads")
    return tuple(sorted(mark.args)) if mark else None


@cache
def key_of(file: str, folders: tuple[str, ...]) -> str:
    """Hash all that decides the tests of a file, as it is now."""
    own = str(Path(file).parent)
    digest = hashlib.sha256(_system().encode())
    for name, value in sorted(os.environ.items()):
        if name.startswith(SETTINGS):
            digest.update(f"{name}={value}\0".encode())
    for path in _tracked():
        if _is_in(path, (*folders, own)) or _is_shared(path):
            digest.update(f"{path}\0{_content(path)}\0".encode())
    for program, folder in BUILT_OF.items():
        if folder in folders or program in folders:
            digest.update(f"{program}\0{_content(program)}\0".encode())
    return digest.hexdigest()[:16]


def key_of_test(item: pytest.Item) -> str | None:
    """Return a test's key, None if it has no mark or git lists no files."""
    folders = folders_of(item)
    return key_if_tracked(_file(item.nodeid), folders) if folders else None


def key_if_tracked(file: str, folders: tuple[str, ...]) -> str | None:
    """Return the key of a file's tests, None if git lists no files."""
    return key_of(file, folders) if _tracked() else None


def is_kept(item: pytest.Item) -> bool:
    """Whether the test has passed with its present inputs."""
    return is_key_kept(item.nodeid, key_of_test(item))


def is_key_kept(name: str, key: str | None) -> bool:
    """Whether the test of this name has passed with this key."""
    return key in _kept().get(name, [])


def keep(passed: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
    """Keep verdicts: the name of a test -> its key at the session's start, its mark's folders.

    The name of a crate's tests is its manifest's path (rust_part.py).
    """
    key_of.cache_clear()
    _hash.cache_clear()
    _tracked.cache_clear()
    _kept.cache_clear()
    kept = _kept()
    for name, (key, folders) in passed.items():
        if key == key_of(_file(name), folders):
            kept[name] = [key, *(one for one in kept.get(name, []) if one != key)][:KEYS_MAX]
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    scratch = KEPT.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    scratch.replace(KEPT)


class KeptTest(pytest.Item):
    """Stands in for a test whose verdict is kept."""

    def runtest(self) -> None:
        """It has passed."""

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


@dataclass
class Watch:
    """What a running test may use, and what else it has used."""

    names: tuple[str, ...]
    others: set[str]


_watch: Watch | None = None


@contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """Fail the test if it uses a file that its mark does not name."""
    global _watch
    outer, folders = _watch, folders_of(item)
    if folders is None:
        yield
        return
    watch = _watch = Watch((*folders, str(Path(_file(item.nodeid)).parent)), set())
    try:
        yield
    finally:
        _watch = outer
    if watch.others:
        names = ", ".join(sorted(watch.others)[:5])
        pytest.fail(f"the mark `reads` does not name the folder of what the test uses: {names}")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is None or event not in ("open", "subprocess.Popen"):
        return
    if event == "open":
        paths = [Path(arguments[0]).absolute()] if isinstance(arguments[0], str | Path) else []
    else:
        words = [arguments[0], *(arguments[1] or [])]
        paths = [Path(word) for word in words if isinstance(word, str | Path)]
    for path in paths:
        if path.is_absolute():
            _check(os.path.normpath(path))


def _check(path: str) -> None:
    if not path.startswith(f"{PROJECT}/"):
        return
    relative = path.removeprefix(f"{PROJECT}/")
    folder = BUILT_OF.get(relative)
    if not _watch or _is_in(relative, _watch.names) or _is_shared(relative):
        return
    if folder and folder in _watch.names:
        return
    if folder or relative in _tracked():
        _watch.others.add(relative)


sys.addaudithook(_audit)


def _is_shared(path: str) -> bool:
    """Whether all tests may depend on it."""
    return str(Path(path).parent) == "tests"


def _is_in(path: str, names: tuple[str, ...]) -> bool:
    return not _places(path).isdisjoint(names)


@cache
def _places(path: str) -> frozenset[str]:
    """Return the path and the folders that it is in."""
    return frozenset([path, *map(str, Path(path).parents)])


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def _tracked() -> list[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    return sorted(set(done.stdout.split("\0")) - {""})


def _system() -> str:
    """Return what of this machine may decide a test: its Python, kernel, packages and processor."""
    cpu = [line for line in PROCESSOR.read_text().splitlines() if _is_fixed(line)]
    words = [
        platform.python_version(),
        platform.release(),
        sha256_file(PACKAGES),
        *sorted(set(cpu)),
    ]
    return "\n".join(words)


def _is_fixed(line: str) -> bool:
    """Whether a line of PROCESSOR is the same each time; clock rates are not."""
    return line.startswith(("vendor_id", "cpu family", "model", "stepping", "flags"))


def _content(path: str) -> str:
    return _hash(PROJECT / path)


@cache
def _hash(place: Path) -> str:
    return sha256_file(place) if place.is_file() else "missing"


@cache
def _kept() -> dict[str, list[str]]:
    try:
        found: dict[str, list[str]] = json.loads(KEPT.read_text())
    except (OSError, ValueError):
        return {}
    return found
