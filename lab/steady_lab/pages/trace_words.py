# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the parts of a `steadyio.trace/1` record are called on a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def time_text(ns: float) -> str:
    """Return a time in ns with three digits or more, in the unit that fits."""
    for unit_ns, unit in TIMES:
        if ns >= unit_ns:
            digits = 2 if ns < 10 * unit_ns else 1 if ns < 100 * unit_ns else 0
            return f"{ns / unit_ns:.{digits}f} {unit}"
    return f"{ns:.0f} ns"


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit of which it is a half or more steps."""
    for unit_bytes, unit in SIZES:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size_bytes} B"


def group_label(group: dict[str, Any]) -> str:
    """Return what the I/Os or requests of a group have in common."""
    low, high = group["size_bytes_min"], group["size_bytes_max"]
    size = size_text(high) if low == high else f"{size_text(low)} to {size_text(high)}"
    what = f"{group['op']} {size}" if high else group["op"]
    origin = f"{group['origin']}: " if group["origin"] else ""
    return f"{origin}{what}, {group['device']}"


def worst_label(worst: dict[str, Any]) -> str:
    """Return what one I/O or request was, and whose."""
    what = worst["call"] or f"{worst['origin']}: {worst['op']}"
    size = f" {size_text(worst['bytes'])}" if worst["bytes"] else ""
    return f"{what}{size}, {worst['comm'] or 'thread'} {worst['pid']}"


def causes_text(worst: dict[str, Any]) -> str:
    """Return why it took so long, or where its time went if no fact accounts for that."""
    if not worst["causes"]:
        largest = worst["largest"]
        return f"cause not known; {time_text(largest['ns'])} in {largest['span']}"
    return "; ".join(cause_text(cause) for cause in worst["causes"])


def cause_text(cause: dict[str, Any]) -> str:
    """Return one cause in words; raises KeyError for one that this version does not know."""
    words = CAUSES.get(cause["cause"])
    if words is None:
        raise KeyError(f"cause {cause['cause']}")
    return f"{time_text(cause['ns'])} {words(cause)}"


def _longest(cause: dict[str, Any]) -> str:
    longest = cause["longest"]
    size = f" {size_text(longest['bytes'])}" if longest["bytes"] else ""
    return f"longest {longest['op']}{size} of {longest['comm'] or longest['origin']}"


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _others(cause: dict[str, Any]) -> str:
    return f"{_count(cause['requests'], 'other request')}, {_longest(cause)}"


def _of_one(cause: dict[str, Any]) -> str:
    whose = "its own" if cause["own"] else "another's"
    return f"of {whose} {cause['cause']}"


def _slow(cause: dict[str, Any]) -> str:
    usual = f"median {time_text(cause['p50_ns'])} of {cause['of_count']}"
    return f"longer than usual with the device: {time_text(cause['device_ns'])}, {usual}"


def _waker(waker: dict[str, Any]) -> str:
    thread = waker["comm"] or f"thread {waker['pid']}"
    over = {"softirq": "a softirq over ", "interrupt": "an interrupt over "}
    return f"woken by {over.get(waker['context'], '')}{thread}"


def _cpu_wait(cause: dict[str, Any]) -> str:
    longest = cause["longest"]
    words = f"of {cause['span']} waiting for a CPU"
    if had := longest["had_cpu"]:
        time = f" for {time_text(had['ns'])}" if had["ns"] is not None else " last"
        words += f", which {had['comm'] or had['class']} had{time}"
        if had["class"] == "real_time":
            words += f" (real-time {had['priority']})"
    return words + (f", {_waker(longest['woken'])}" if longest["woken"] else "")


def _asleep(cause: dict[str, Any]) -> str:
    woken = cause["longest"]["woken"]
    return f"of {cause['span']} asleep" + (f", {_waker(woken)}" if woken else "")


# What follows the time, by cause.
CAUSES: dict[str, Callable[[dict[str, Any]], str]] = {
    "behind": lambda cause: f"behind {_others(cause)}",
    "shared": lambda cause: f"with the device together with {_others(cause)}",
    "flush": _of_one,
    "discard": _of_one,
    "requeued": lambda cause: f"after the driver gave it back {_count(cause['times'], 'time')}",
    "pieces": lambda cause: f"between its {cause['pieces']} pieces",
    "cut": lambda cause: f"between the ends of the {cause['requests']} requests it was cut into",
    "merged": lambda cause: f"until {_count(cause['bios'], 'further bio')} had been merged into it",
    "device_slow": _slow,
    "tag_wait": lambda cause: "waiting for a tag",
    "journal": lambda cause: "of the journal's writes",
    "writeback": lambda cause: f"while writeback had {_count(cause['requests'], 'request')}",
    "running": lambda cause: f"of {cause['span']} on a CPU",
    "cpu_wait": _cpu_wait,
    "asleep": _asleep,
    "dirty_throttle": lambda cause: (
        f"asleep because too much was dirty, {_count(cause['times'], 'pause')}"
    ),
}
