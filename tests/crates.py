# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files that decide the build and the tests of a Rust crate, for verdicts.py."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steady_lab.paths import PROJECT

WORKSPACE = PROJECT / "device"
# Both decide what another crate is built of, and no test of that is in them.
OF_BUILD = ("dependencies", "build-dependencies")
# A path in a test leads out of its crate: "../../docs/spec", or "/../.." after the crate's folder.
OUTSIDE = re.compile(r'["}](/?)(\.\./[^"{]*)["{]')
# What the tests of a crate may read that take the whole project for their folder.
PROJECT_FOLDERS = ("README.md", "docs", "experiments", "scripts")


class _Crate(NamedTuple):
    folder: str
    built_of: list[str]
    tested_with: list[str]


def decide(name: str) -> tuple[str, ...]:
    """Return the folders of a crate and of those below it, all manifests, and the lock file.

    Raises KeyError for an unknown crate.
    """
    return _with_manifests(_folders([name]))


def decide_tests(name: str) -> tuple[str, ...]:
    """Return the same for the crate's tests: also what they are built of, and the files they name.

    Raises KeyError for an unknown crate.
    """
    crate = _crates()[name]
    sources = sorted((PROJECT / crate.folder).rglob("*.rs"))
    outside = {path for source in sources for path in _named_in(source, PROJECT / crate.folder)}
    return _with_manifests(_folders([name, *crate.tested_with]) | outside)


def all_crates() -> dict[str, str]:
    """Return the folder of each crate of the workspace."""
    return {name: crate.folder for name, crate in _crates().items()}


def _folders(names: list[str]) -> set[str]:
    """Return the folders of crates and of those below them."""
    found: set[str] = set()
    rest = list(names)
    while rest:
        crate = _crates()[rest.pop()]
        if crate.folder not in found:
            found.add(crate.folder)
            rest += crate.built_of
    return found


def _with_manifests(found: set[str]) -> tuple[str, ...]:
    manifests = {str(path.relative_to(PROJECT)) for path in WORKSPACE.glob("*/Cargo.toml")}
    return tuple(sorted(found | manifests | {"device/Cargo.toml", "device/Cargo.lock"}))


def _named_in(source: Path, crate: Path) -> Iterator[str]:
    """Yield the files and folders outside a crate that a source names by a relative path.

    A test runs in its crate's folder; `include_str!` and `#[path]` begin at the source.
    """
    for root, relative in OUTSIDE.findall(source.read_text(encoding="utf-8")):
        for start in [crate] if root else [crate, source.parent]:
            place = (start / relative).resolve()
            if place == PROJECT:
                yield from PROJECT_FOLDERS
            elif (
                place.exists() and place.is_relative_to(PROJECT) and not place.is_relative_to(crate)
            ):
                yield str(place.relative_to(PROJECT))
                if place.suffix == ".rs":
                    yield from _named_in(place, crate)


@cache
def _crates() -> dict[str, _Crate]:
    """Return the crates of the workspace by name."""
    manifests = {
        str(path.parent.relative_to(PROJECT)): tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted(WORKSPACE.glob("*/Cargo.toml"))
    }
    names = {manifest["package"]["name"] for manifest in manifests.values()}
    return {
        manifest["package"]["name"]: _Crate(
            folder,
            [one for one in _named(manifest, *OF_BUILD) if one in names],
            [one for one in _named(manifest, "dev-dependencies") if one in names],
        )
        for folder, manifest in manifests.items()
    }


def _named(manifest: dict[str, Any], *kinds: str) -> list[str]:
    """Return the names of all crates in the tables, those for one kind of target included."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return [name for table in tables for kind in kinds for name in table.get(kind, {})]
