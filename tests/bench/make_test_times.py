# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long `make test` takes, by the change since the last run.

  build/venv/bin/python tests/bench/make_test_times.py [CASE...] [--runs 3] [--folder DIR]

In a clone of HEAD with a cache of its own; median and range of the runs. Useful on an idle machine
only. Called by the author of docs/reference/testing.md. --folder keeps clone and cache, so that
other cases of the same commit can run later. The cases, in the order that they run:

    fresh     an empty cache, except for downloads
  kernels   kernels built, no boot and no verdict kept
  same      nothing changed
  document  one document changed
  rust      the crate steadyio-trace changed
  policy    kernel/policy changed
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from steady_lab.paths import PROJECT, cache_dir

DOWNLOADED = ("packages", "cargo", "apt")
# Kept from one run of a case to the next, and thrown away by a case that wants none.
BOOTS, VERDICTS = "boots", "tests/verdicts.json"
CASES = ("fresh", "kernels", "same", "document", "rust", "policy")

# What a case adds to which file, at its end. Each changes the program that is made of it.
APPENDED = {
    "document": ("docs/index.md", "\nChange {0}.\n"),
    "rust": ("device/trace/src/lib.rs", '#[used]\nstatic CHANGE_{0}: &str = "change {0}";\n'),
    "policy": ("kernel/policy/k2_policy.c", "const unsigned int k2_change_{0} = {0};\n"),
}


class Clone:
    """A scratch clone; `number` makes each change differ from the one before."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.cache = folder / "clone", folder / "cache"
        self.number = int(time.time())
        self.is_new = not self.cache.exists()
        if self.is_new:
            self.cache.mkdir(parents=True)
            for name in DOWNLOADED:
                if (cache_dir() / name).exists():
                    shutil.copytree(cache_dir() / name, self.cache / name, symlinks=True)
            self.again()

    def again(self) -> None:
        """Clone from scratch."""
        shutil.rmtree(self.tree, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(self.tree)], check=True)

    def prepare(self, case: str) -> None:
        self.number += 1
        if case == "fresh":
            self.again()
            for path in self.cache.iterdir():
                if path.name not in DOWNLOADED:
                    shutil.rmtree(path)
        elif case == "kernels":
            shutil.rmtree(self.cache / BOOTS, ignore_errors=True)
            (self.cache / VERDICTS).unlink(missing_ok=True)
            shutil.rmtree(self.tree / "build" / "work", ignore_errors=True)
        elif case in APPENDED:
            name, text = APPENDED[case]
            with (self.tree / name).open("a") as file:
                file.write(text.format(self.number))

    def timed(self, case: str) -> float:
        """Run `make test` after the case's change; return its seconds."""
        self.prepare(case)
        start_s = time.monotonic()
        more = {"STEADYIO_CACHE": str(self.cache)}
        done = subprocess.run(["make", "test"], cwd=self.tree, env=os.environ | more, check=False)
        assert done.returncode == 0, f"{case}: make test failed"
        return time.monotonic() - start_s


def main() -> None:
    parser = argparse.ArgumentParser(description="How long make test takes, by what has changed.")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each case [3]")
    parser.add_argument("--folder", type=Path, help="keep clone and cache there")
    arguments = parser.parse_args()
    cases = arguments.cases or CASES
    if unknown := set(cases) - set(CASES):
        parser.error(f"{', '.join(unknown)}: expected {', '.join(CASES)}")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="test-times-"))
    lines = ["| case | median min | range | runs |", "|---|---:|---|---:|"]
    try:
        clone = Clone(folder)
        if clone.is_new and "fresh" not in cases:
            clone.timed("fresh")
        for case in CASES:
            if case in cases:
                minutes = [clone.timed(case) / 60 for _ in range(arguments.runs)]
                low, high = min(minutes), max(minutes)
                middle = statistics.median(minutes)
                lines.append(
                    f"| {case} | {middle:.1f} | {low:.1f} to {high:.1f} | {len(minutes)} |"
                )
    finally:
        if not arguments.folder:
            shutil.rmtree(folder)
        print("\n".join(lines))


if __name__ == "__main__":
    main()
