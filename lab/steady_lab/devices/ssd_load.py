# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the load of the paper on K2 and SSDs on the SSD model, without a kernel: lab/simulate."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache

from steady_lab.devices.spec import load_device
from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT

LOAD = BUILD / "simulate" / "ssd_load"
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
    """Compile the load. Raises LabError."""
    made = subprocess.run(
        ["make", "-s", "-C", PROJECT / "lab" / "simulate"], capture_output=True, text=True
    )
    if made.returncode:
        raise LabError(f"lab/simulate cannot be built:\n{made.stderr}")


def run_load(drive: Mapping[str, int], *words: str) -> dict[str, float]:
    """Return the load's output (mb_s, p50_us, p99_us, p999_us, max_us, counters) for a drive.

    `drive` has the numbers of an nvme spec by parameter. Raises LabError.
    """
    numbers = [f"{name}={value}" for name, value in drive.items() if name not in NOT_THE_MODEL]
    done = subprocess.run([LOAD, *numbers, *words], capture_output=True, text=True)
    if done.returncode:
        raise LabError(done.stderr.strip())
    found: dict[str, float] = json.loads(done.stdout)
    return found


@cache
def simulated(state: str, *words: str) -> dict[str, float]:
    """Return the load's output for the committed drive, "half full" or "full"."""
    return run_load(load_device(SPEC[state]).values, *words)
