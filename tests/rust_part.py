# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the Rust tests of the crates that changed since they passed: a part of `make test`.

By hand: build/venv/bin/python tests/rust_part.py, called by scripts/test with the same random
inputs each time. A crate has changed if a file of it, of a crate that it or its tests are built of,
or of what its tests read has changed, or this machine (crates.py, verdicts.py). With
STEADYIO_TEST_CACHE=0 or another PROPTEST_RNG_SEED all crates are tested, and no result is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import crates
import verdicts
from steady_lab.paths import BUILD, PROJECT

# Built by maturin; it has no Rust tests of its own.
WITHOUT_TESTS = {"steadyio-python"}
SEED = "1"


class Crate(NamedTuple):
    """What decides the tests of a crate, and the key of that at the start."""

    manifest: str
    reads: tuple[str, ...]
    key: str | None


def tested_crates() -> dict[str, Crate]:
    """Return those with tests."""
    found = {}
    for name, folder in crates.all_crates().items():
        if name not in WITHOUT_TESTS:
            manifest, reads = f"{folder}/Cargo.toml", crates.decide_tests(name)
            found[name] = Crate(manifest, reads, verdicts.key_if_tracked(manifest, reads))
    return found


def run(names: list[str]) -> int:
    """Test these crates; return cargo's exit status.

    All are built: the features of a crate depend on the crates that are built with it.
    """
    words = [str(BUILD / "venv" / "bin" / "cargo-nextest"), "nextest", "run", "--locked"]
    words += ["--no-fail-fast", "--manifest-path", str(PROJECT / "device" / "Cargo.toml")]
    words += ["--target-dir", str(BUILD / "cargo")]
    words += ["-E", " | ".join(f"package({name})" for name in names)]
    return subprocess.run(words, check=False).returncode


def main() -> int:
    """Return the exit status."""
    seed = os.environ.setdefault("PROPTEST_RNG_SEED", SEED)
    tested = tested_crates()
    if os.environ.get("STEADYIO_TEST_CACHE") == "0" or seed != SEED:
        return run(list(tested))
    changed = [
        name
        for name, crate in tested.items()
        if not verdicts.is_key_kept(crate.manifest, crate.key)
    ]
    status = run(changed) if changed else 0
    if status == 0:
        passed = [tested[name] for name in changed]
        verdicts.keep({one.manifest: (one.key, one.reads) for one in passed if one.key})
        # scripts/test shows this line.
        print(f"cached: {len(tested) - len(changed)} of {len(tested)} crates", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
