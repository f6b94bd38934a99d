# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long a clone takes to its first report, part by part: `make demo` with an empty cache.

  build/venv/bin/python tests/bench/first_run.py

What was downloaded on this machine before (Debian's packages, crates) is not downloaded again; the
Python libraries are, which pip keeps. Some minutes, and only on an idle machine worth anything.
Called by who writes docs/reference/first-run.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from steady_lab.paths import PROJECT, cache_dir

DOWNLOADED = ("packages", "cargo", "apt")
# The first line of `make demo` that tells that a part has begun.
PARTS = {
    "Python libraries": "setup: installing the lab's Python libraries",
    "the lab's Debian, unpacked": "the lab's guest root",
    "`steady`, compiled": "building steady",
    "kernel source, unpacked": "(downloading|unpacking).*(linux-source|packages)",
    "kernel, compiled": "building the base lab kernel",
    "modules, and 20 boots": "base kernel built",
    "tables and report": "every-10-ms:",
}


def timed(clone: Path, cache: Path) -> dict[str, float]:
    """When each part of `make demo` began, in seconds, and "end"."""
    began: dict[str, float] = {}
    start_s = time.monotonic()
    demo = subprocess.Popen(
        ["make", "demo"],
        cwd=clone,
        env=os.environ | {"STEADYIO_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    waiting = list(PARTS)
    for line in demo.stdout:
        now_s = time.monotonic() - start_s
        print(f"{now_s:6.0f} {line}", end="", flush=True)
        for name in waiting:
            if re.match(PARTS[name], line):
                began[name] = now_s
                waiting = waiting[waiting.index(name) + 1 :]
                break
    assert demo.wait() == 0, "make demo failed"
    assert list(began) == list(PARTS), f"not seen: {set(PARTS) - set(began)}"
    return began | {"end": time.monotonic() - start_s}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="first-run-"))
    try:
        clone, cache = folder / "clone", folder / "cache"
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
        cache.mkdir()
        for name in DOWNLOADED:
            if (cache_dir() / name).exists():
                shutil.copytree(cache_dir() / name, cache / name, symlinks=True)
        began = timed(clone, cache)
    finally:
        shutil.rmtree(folder)
    ends = [*began.values()][1:]
    print("\n| part | s |\n|---|---:|")
    for name, end_s in zip(PARTS, ends, strict=True):
        print(f"| {name} | {end_s - began[name]:.0f} |")
    print(f"| all | {ends[-1]:.0f} |")


if __name__ == "__main__":
    main()
