# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long a clone takes to its first report, part by part: `make demo` with an empty cache.

  build/venv/bin/python tests/bench/first_run.py [--prebuilt]

With --prebuilt the clone is given what this one has compiled (steady-lab prebuilt).
What this machine's cache has of Debian's packages and crates is not downloaded again; kernel source
and Python libraries are, unless pip keeps them. Worth something on an idle machine only. Called by
who writes docs/reference/steady-lab.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from steady_lab.devices.kinds import MODULES
from steady_lab.kernels.architecture import FLAVOURS
from steady_lab.kernels.prebuilt import pack
from steady_lab.kernels.source import RELEASES
from steady_lab.paths import PROJECT, cache_dir

DOWNLOADED = ("packages", "cargo", "apt")
# In their order, each with the start of the first line of `make demo` that reports it.
PARTS = {
    "Python libraries": "setup: installing the lab's Python libraries",
    "the lab's Debian, unpacked": "the lab's guest root",
    "`steady`, compiled": "building steady",
    "kernel source": "downloading . packages|unpacking linux-source",
    "kernel, compiled": "building the base lab kernel",
    "modules, 20 boots, report": "base kernel built",
}
PARTS_PREBUILT = {
    "Python libraries": PARTS["Python libraries"],
    "the lab's Debian, `steady` and kernel, unpacked": PARTS["the lab's Debian, unpacked"],
    "kernel source": PARTS["kernel source"],
    "modules, 20 boots, report": "build/bin/steady-lab demo",
}


def timed(clone: Path, more: dict[str, str], parts: dict[str, str]) -> dict[str, float]:
    """Return when each part of `make demo` began, in seconds, and when all had ended."""
    began: dict[str, float] = {}
    start_s = time.monotonic()
    demo = subprocess.Popen(
        ["make", "demo"],
        cwd=clone,
        env=os.environ | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    waiting = list(parts)
    for line in demo.stdout:
        now_s = time.monotonic() - start_s
        print(f"{now_s:6.0f} {line}", end="", flush=True)
        if waiting and re.match(parts[waiting[0]], line):
            began[waiting.pop(0)] = now_s
    assert demo.wait() == 0, "make demo failed"
    assert not waiting, f"not seen: {waiting}"
    return began | {"end": time.monotonic() - start_s}


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a clone takes to its first report.")
    parser.add_argument("--prebuilt", action="store_true", help="give it what is compiled here")
    prebuilt = parser.parse_args().prebuilt
    parts = PARTS_PREBUILT if prebuilt else PARTS
    folder = Path(tempfile.mkdtemp(prefix="first-run-"))
    try:
        clone, cache = folder / "clone", folder / "cache"
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
        cache.mkdir()
        for name in DOWNLOADED:
            if (cache_dir() / name).exists():
                shutil.copytree(cache_dir() / name, cache / name, symlinks=True)
        more = {"STEADYIO_CACHE": str(cache)}
        if prebuilt:
            more["STEADYIO_PREBUILT"] = str(folder / "prebuilt.tar.xz")
            file = Path(more["STEADYIO_PREBUILT"])
            pack(file, [(RELEASES[0], FLAVOURS[0])], MODULES, with_steady=False)
        began = timed(clone, more, parts)
    finally:
        shutil.rmtree(folder)
    ends = list(began.values())[1:]
    print("\n| part | s |\n|---|---:|")
    for name, end_s in zip(parts, ends, strict=True):
        print(f"| {name} | {end_s - began[name]:.0f} |")
    print(f"| all | {ends[-1]:.0f} |")


if __name__ == "__main__":
    main()
