# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the Rust tests of the crates that changed since they passed: a part of `make test`.

Called by scripts/test with the command that runs cargo nextest. A crate has changed if a file of
it has, or of a crate that it or its tests are built of, or of what its tests read, or this machine
(crates.py, verdicts.py). With STEADYIO_TEST_CACHE=0 or another PROPTEST_RNG_SEED all crates are
tested, and no result is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import crates
import verdicts

# Built by maturin; it has no Rust tests of its own.
WITHOUT_TESTS = {"steadyio-python"}
# Of the random inputs that scripts/test chooses: the same each time.
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


def run(nextest: list[str], names: list[str]) -> int:
    """Test these crates; return cargo's exit status.

    All are built: the features of a crate depend on the crates that are built with it.
    """
    chosen = " | ".join(f"package({name})" for name in names)
    return subprocess.run([*nextest, "-E", chosen], check=False).returncode


def main(nextest: list[str]) -> int:
    """Test what changed with the command `nextest`; return the exit status."""
    tested = tested_crates()
    seed = os.environ["PROPTEST_RNG_SEED"]
    if os.environ.get("STEADYIO_TEST_CACHE") == "0" or seed != SEED:
        return run(nextest, list(tested))
    changed = [
        name
        for name, crate in tested.items()
        if not verdicts.is_key_kept(crate.manifest, crate.key)
    ]
    status = run(nextest, changed) if changed else 0
    if status == 0:
        passed = [tested[name] for name in changed]
        verdicts.keep({one.manifest: (one.key, one.reads) for one in passed if one.key})
        # scripts/test shows this line.
        print(f"cached: {len(tested) - len(changed)} of {len(tested)} crates", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
