# SPDX-License-Identifier: MIT OR Apache-2.0
"""Probes emulated cards, and compares the profiles with their specs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from releases import guest_kernel
from steady_lab.devices.spec import load_device
from steady_lab.kernels.source import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.toml_table import load_toml

CARDS = PROJECT / "experiments" / "devices"
STEADY = f"{GUEST_PROJECT}/build/bin/steady"
# All of the card, which is in the guest's memory, or a file of a file system on it: how large.
CAPACITY_MIB = {"raw": 320, "ext4": 1024, "f2fs": 1024}
# Of the times and of what pauses, relative; what the host adds to each command is the card's.
TIME_ERROR, PAUSE_ERROR = 0.05, 0.1
HOST_NS = 4_000


def small(card: str, work: Path, place: str = "raw") -> Path:
    """The card's spec with the capacity that such a probe takes."""
    text = (CARDS / f"{card}.toml").read_text(encoding="utf-8")
    capacity = load_toml(CARDS / f"{card}.toml")["card"]["capacity_mib"]
    path = work / "card.toml"
    smaller = text.replace(f"capacity_mib = {capacity}", f"capacity_mib = {CAPACITY_MIB[place]}")
    path.write_text(smaller, encoding="utf-8")
    return path


def probed(
    card: Path,
    work: Path,
    place: str = "raw",
    release: str = RELEASES[0],
    length: str = "--quick",
) -> dict[str, Any]:
    """The profile of reads and writes, which is then in the work folder."""
    image = None if place == "raw" else "card.img"
    if image:
        (work / image).touch()
    request = BootRequest(
        ["sh", f"{GUEST_PROJECT}/tests/bound/probe_card.sh"],
        work,
        card,
        environment={"STEADY": STEADY, "WHERE": place, "LENGTH": length},
        card_image=image,
    )
    result = guest_kernel(release).boot(request)
    assert result.exit_status == 0, result.output[-3000:]
    return load_toml(work / "profile.toml")


def expected(card: Path, place: str = "raw") -> dict[str, float]:
    """What the spec says, as a probe sees it: the bus is in the time per KiB."""
    values = load_device(card).values
    found: dict[str, float] = {}
    for op in ("read", "write"):
        found[f"{op}.base_ns"] = values[f"{op}_base_ns"]
        found[f"{op}.per_kib_ns"] = values[f"{op}_per_kib_ns"] + values["bus_per_kib_ns"]
        found[f"{op}.jump_ns"] = values[f"{op}_jump_ns"]
        found[f"{op}.slow_ns"] = values[f"{op}_slow_ns"]
    found["write.base_ns"] += values.get("status_ns", 0)
    found["write.pause_ns"] = values["write_pause_ns"]
    found["write.pause_kib"] = values["write_pause_kib"]
    if place == "raw" and "erase_base_ns" in values:
        # Discards need a device that has them.
        found["erase.base_ns"] = values["erase_base_ns"]
        found["erase.per_kib_ns"] = values["erase_per_kib_ns"]
    if values["cache_kib"]:
        found["cache.kib"] = values["cache_kib"]
        found["flush.base_ns"] = values["flush_base_ns"]
    if values.get("queue_depth"):
        for key in ("units", "bus_per_kib_ns"):
            found[f"card.{key}"] = values[key]
        found["queue.depth"] = values["queue_depth"]
    if values["slow_length_us"]:
        found["slow.period_us"] = values["slow_period_us"]
        found["slow.length_us"] = values["slow_length_us"]
    return found


def errors(profile: dict[str, Any], wanted: dict[str, float]) -> dict[str, float]:
    """By how much each value is wrong, relative, beyond what the host may add."""
    bus_ns = profile["card"].get("bus_per_kib_ns", 0)
    found = {}
    for key, value in wanted.items():
        table, name = key.split(".")
        got = profile.get(table, {}).get(name, 0)
        if key in ("read.per_kib_ns", "write.per_kib_ns"):
            got += bus_ns
        slack = HOST_NS if name.endswith("_ns") and "per_kib" not in name else 0
        off = max(0.0, abs(got - value) - slack)
        found[key] = off / value if value else math.inf if off else 0.0
    return found


def is_pause(key: str) -> bool:
    return ".pause_" in key


def wrong(profile: dict[str, Any], wanted: dict[str, float]) -> dict[str, float]:
    """The errors that are too large."""
    limits = {key: PAUSE_ERROR if is_pause(key) else TIME_ERROR for key in wanted}
    return {key: error for key, error in errors(profile, wanted).items() if error > limits[key]}
