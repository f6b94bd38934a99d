# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files that decide the build of a Rust crate, for the mark `reads` (verdicts.py)."""

import tomllib
from functools import cache
from typing import Any

from steady_lab.paths import PROJECT

WORKSPACE = PROJECT / "device"
# Both decide what another crate is built of, and no test of that is in them.
OF_BUILD = ("dependencies", "build-dependencies")


def decide(name: str) -> tuple[str, ...]:
    """Return the folders of a crate and of those below it, all manifests, and the lock file.

    Raises KeyError for an unknown crate.
    """
    found: set[str] = set()
    rest = [name]
    while rest:
        folder, below = _crates()[rest.pop()]
        if folder not in found:
            found.add(folder)
            rest += below
    manifests = {str(path.relative_to(PROJECT)) for path in WORKSPACE.glob("*/Cargo.toml")}
    return tuple(sorted(found | manifests | {"device/Cargo.toml", "device/Cargo.lock"}))


@cache
def _crates() -> dict[str, tuple[str, list[str]]]:
    """Return of each crate its folder, and the crates of the workspace that it is built of."""
    manifests = {
        str(path.parent.relative_to(PROJECT)): tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted(WORKSPACE.glob("*/Cargo.toml"))
    }
    names = {manifest["package"]["name"] for manifest in manifests.values()}
    return {
        manifest["package"]["name"]: (folder, [one for one in _built_of(manifest) if one in names])
        for folder, manifest in manifests.items()
    }


def _built_of(manifest: dict[str, Any]) -> list[str]:
    """Return the names of all crates in the tables, those for one kind of target included."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return [name for table in tables for kind in OF_BUILD for name in table.get(kind, {})]
