# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks of the debug kernel cost on 6.12: CPU time of building it, and of its tests.

  build/venv/bin/python tests/bench/debug_checks.py [CHECKS...]

In a clone of HEAD: builds a kernel for each set of checks, then runs tests/test_kernel.py with no
result from the cache. Counts the CPU time of the whole machine, since guests are no children of the
tests: useful on an idle machine only. Called by the author of docs/reference/testing.md.

  none      no check of memory, locks or objects; fault injection stays
  locks     lockdep and RCU's checks
  memory    KASAN and the checks of lists, objects and pages
  outline   all, with KASAN_OUTLINE
  all       the debug kernel as it is
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steady_lab.paths import PROJECT, cache_dir

RELEASE = "6.12"
LOCKS = r"PROVE_\w+"
MEMORY = r"KASAN\w*|DEBUG_(LIST|PLIST|SG|VM|OBJECTS\w*)|BUG_ON_DATA_CORRUPTION"
REMOVED = {
    "none": f"{LOCKS}|{MEMORY}",
    "locks": MEMORY,
    "memory": LOCKS,
    "outline": "KASAN_INLINE",
    "all": "",
}
MODULES = ("-m", "steady_lab.cli", "kernel", "modules", "--flavour", "debug", "--kernel", RELEASE)
TESTS = ("-m", "pytest", "-c", "lab/pyproject.toml", "--rootdir", ".", "-q", "-n", "2")


def without(config: str, removed: str) -> str:
    """Leave out the options whose names match, so that they get tinyconfig's value, off."""
    lines = config.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(rf"CONFIG_({removed})=", line))


def clone(folder: Path) -> Path:
    """Clone HEAD, with this one's virtual environment and a cache without kernels next to it."""
    tree, cache = folder / "clone", folder / "cache"
    subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(tree)], check=True)
    (tree / "build").mkdir()
    (tree / "build" / "venv").symlink_to(PROJECT / "build" / "venv")
    cache.mkdir()
    for path in cache_dir().iterdir():
        if path.name != "kernels":
            (cache / path.name).symlink_to(path)
    return tree


def busy_s() -> float:
    """Return for how long the machine's CPUs have been busy."""
    words = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq, steal = map(int, words[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run(tree: Path, *command: str) -> tuple[float, float]:
    """Run the clone's own lab; return seconds of CPU and of real time."""
    more = {
        "PYTHONPATH": str(tree / "lab"),
        "STEADYIO_CACHE": str(tree.parent / "cache"),
        "STEADYIO_TEST_CACHE": "0",
        "STEADY_RELEASES": RELEASE,
    }
    before_s, start_s = busy_s(), time.monotonic()
    subprocess.run([sys.executable, *command], cwd=tree, env=os.environ | more, check=True)
    return busy_s() - before_s, time.monotonic() - start_s


def row(tree: Path, checks: str) -> str:
    """Build the kernel with these checks and run its tests; return a line of the table."""
    fragment = tree / "lab" / "kernel" / "debug.config"
    whole = (PROJECT / "lab" / "kernel" / "debug.config").read_text()
    fragment.write_text(without(whole, REMOVED[checks]))
    build_s, _ = run(tree, *MODULES)
    tests_s, real_s = run(tree, *TESTS, "tests/test_kernel.py")
    return f"| {checks} | {build_s:.0f} | {tests_s:.0f} | {real_s:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the debug kernel's checks cost.")
    parser.add_argument("checks", nargs="*", metavar="CHECKS")
    names = parser.parse_args().checks or list(REMOVED)
    if unknown := set(names) - set(REMOVED):
        parser.error(f"{', '.join(unknown)}: expected {', '.join(REMOVED)}")
    print(
        "| checks | build, CPU s | tests, CPU s | tests, real s |\n|---|---:|---:|---:|", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="debug-checks-") as folder:
        tree = clone(Path(folder))
        for name in names:
            print(row(tree, name), flush=True)


if __name__ == "__main__":
    main()
