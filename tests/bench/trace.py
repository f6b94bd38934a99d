# SPDX-License-Identifier: MIT OR Apache-2.0
"""How fast `steady trace FILE` reads text, and in how much memory, on this machine's clock.

Each sample of device/trace/tests/traces is repeated, with later times, until it has a million
lines, and read by the example read_trace. By hand: `build/venv/bin/python tests/bench/trace.py`.
"""

import re
import resource
import subprocess
import tempfile
from pathlib import Path

from steady_lab.paths import PROJECT

SAMPLES = PROJECT / "device" / "trace" / "tests" / "traces"
TEXTS = ("host-report-t.txt", "host-perf-fields-ns.txt")
LINES = 1_000_000
# Longer than each sample, so that times only grow.
STEP_S = 10
TIME = re.compile(r"(\d+)(\.\d{6,9})")


def write_repeated(sample: Path, target: Path) -> None:
    """The sample's events again and again, each time 10 s later."""
    lines = []
    for line in sample.read_text().splitlines():
        found = TIME.search(line)
        if found and not line.startswith("#"):
            lines.append((line[: found.start()], int(found[1]), line[found.start(2) :]))
    with target.open("w") as out:
        for turn in range(-(-LINES // len(lines))):
            for before, seconds, behind in lines:
                out.write(f"{before}{seconds + turn * STEP_S}{behind}\n")


def main() -> None:
    target = PROJECT / "build" / "cargo"
    cargo = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "steadyio-trace"]
    cargo += ["--example", "read_trace", "--manifest-path", str(PROJECT / "device" / "Cargo.toml")]
    subprocess.run([*cargo, "--target-dir", str(target)], check=True)
    program = target / "release" / "examples" / "read_trace"
    with tempfile.TemporaryDirectory() as folder:
        for name in TEXTS:
            text = Path(folder) / name
            write_repeated(SAMPLES / name, text)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            result = subprocess.run([program, text], check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{name}: {cpu_s:.2f} s of CPU time, {result.stdout.strip()}")


if __name__ == "__main__":
    main()
