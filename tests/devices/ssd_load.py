# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the load of the paper on K2 and SSDs on the SSD model, without a kernel.

lab/simulate/ssd_load.c, built by `make -C tests/devices check`, with the numbers of a device spec.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from steady_lab.devices.spec import load_device
from steady_lab.paths import BUILD, PROJECT

LOAD = BUILD / "tests" / "devices" / "ssd_load"
_DEVICES = PROJECT / "experiments" / "devices"
SPEC = {
    "half full": _DEVICES / "samsung-970-evo-plus-250gb.toml",
    "full": _DEVICES / "samsung-970-evo-plus-250gb-full.toml",
}
OPERATIONS = {
    "sequential read": ("write=0", "sequential=1"),
    "random read": ("write=0", "sequential=0"),
    "sequential write": ("write=1", "sequential=1"),
    "random write": ("write=1", "sequential=0"),
}
# Those of the module and the host; the others are the model's.
NOT_THE_MODEL = {
    *("namespaces", "queues", "queue_entries"),
    *("mdts_kib", "volatile_cache", "admin_ns"),
}


def build() -> None:
    folder = PROJECT / "tests" / "devices"
    subprocess.run(["make", "-s", "-C", folder, f"../../{LOAD.relative_to(PROJECT)}"], check=True)


@cache
def simulated(state: str, *words: str) -> dict[str, float]:
    """Return what the load prints: mb_s, p50_us, p99_us, p999_us, max_us, and counters."""
    values = load_device(SPEC[state]).values
    drive = [f"{name}={value}" for name, value in values.items() if name not in NOT_THE_MODEL]
    done = subprocess.run([str(LOAD), *drive, *words], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(page: Path, tables: str, written_page: Callable[[str], str]) -> None:
    """Print the tables, and with --write put them into their page."""
    print(tables, end="")
    if "--write" in sys.argv[1:]:
        page.write_text(written_page(page.read_text(encoding="utf-8")), encoding="utf-8")
