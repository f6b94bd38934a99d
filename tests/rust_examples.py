# SPDX-License-Identifier: MIT OR Apache-2.0
"""Examples of the Rust crates, which tests run as programs."""

import subprocess
from functools import cache
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT

# One may wait for the Rust tests, which hold cargo's lock.
BUILD_TIMEOUT_S = 1800


@cache
def rust_example(name: str) -> Path:
    """Build the workspace's examples and return one; raises CalledProcessError.

    Its tests have the mark `waits_for_cargo`. One package alone would have dependencies with fewer
    features, all of them compiled again.
    """
    command = ["cargo", "build", "--quiet", "--locked", "--examples"]
    command += ["--manifest-path", str(PROJECT / "device" / "Cargo.toml")]
    command += ["--target-dir", str(BUILD / "cargo")]
    subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)
    return BUILD / "cargo" / "debug" / "examples" / name
