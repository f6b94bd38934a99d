# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks of the debug kernel cost: CPU time of the kernel tests on 6.12, by checks.

  build/venv/bin/python tests/bench/debug_checks.py [CHECKS...]

In a clone of HEAD, with the cache of this one: builds a kernel for each set of checks, then runs
tests/test_kernel.py with no result from the cache. Counts the CPU time of the whole machine, since
guests are no children of the tests: useful on an idle machine only. Called by the author of
docs/reference/testing.md.

  none      no check of memory, locks or objects; fault injection stays
  locks     lockdep and RCU's checks
  memory    KASAN and the checks of lists, objects and pages
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

from steady_lab.paths import PROJECT

RELEASE = "6.12"
LOCKS = r"PROVE_\w+"
MEMORY = r"KASAN\w*|DEBUG_(LIST|PLIST|SG|VM|OBJECTS\w*)|BUG_ON_DATA_CORRUPTION"
REMOVED = {"none": f"{LOCKS}|{MEMORY}", "locks": MEMORY, "memory": LOCKS, "all": ""}
MODULES = ("-m", "steady_lab.cli", "kernel", "modules", "--flavour", "debug", "--kernel", RELEASE)
TESTS = ("-m", "pytest", "-c", "lab/pyproject.toml", "--rootdir", ".", "-q", "-n", "2")


def without(config: str, removed: str) -> str:
    """Leave out the options whose names match, so that they get tinyconfig's value, off."""
    lines = config.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(rf"CONFIG_({removed})=", line))


def clone(folder: Path) -> Path:
    """A clone of HEAD that shares this one's virtual environment."""
    subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(folder)], check=True)
    (folder / "build").mkdir()
    (folder / "build" / "venv").symlink_to(PROJECT / "build" / "venv")
    return folder


def busy_s() -> float:
    """Return for how long the machine's CPUs have been busy."""
    words = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq, steal = map(int, words[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run(tree: Path, *command: str) -> tuple[float, float]:
    """Run the clone's own lab; return seconds of CPU and of real time."""
    more = {"PYTHONPATH": str(tree / "lab"), "STEADYIO_TEST_CACHE": "0", "STEADY_RELEASES": RELEASE}
    before_s, start_s = busy_s(), time.monotonic()
    subprocess.run([sys.executable, *command], cwd=tree, env=os.environ | more, check=True)
    return busy_s() - before_s, time.monotonic() - start_s


def measure(tree: Path, checks: str) -> tuple[float, float]:
    fragment = tree / "lab" / "kernel" / "debug.config"
    whole = (PROJECT / "lab" / "kernel" / "debug.config").read_text()
    fragment.write_text(without(whole, REMOVED[checks]))
    run(tree, *MODULES)
    return run(tree, *TESTS, "tests/test_kernel.py")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the debug kernel's checks cost.")
    all_checks = list(REMOVED)
    parser.add_argument(
        "checks", nargs="*", default=all_checks, choices=all_checks, metavar="CHECKS"
    )
    names = parser.parse_args().checks
    rows = []
    with tempfile.TemporaryDirectory(prefix="debug-checks-") as folder:
        tree = clone(Path(folder) / "clone")
        for name in names:
            cpu_s, real_s = measure(tree, name)
            rows.append(f"| {name} | {cpu_s:.0f} | {real_s:.0f} |")
    print("\n".join(["| checks | CPU, s | real, s |", "|---|---:|---:|", *rows]))


if __name__ == "__main__":
    main()
