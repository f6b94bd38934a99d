# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the parts of a `steadyio.trace/1` record are called on a page."""

from __future__ import annotations

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


def round_time_text(ns: float) -> str:
    """Return a time that is round, such as a step of an axis, without zeros behind it."""
    unit_ns, unit = next((unit for unit in TIMES if ns >= unit[0]), (1, "ns"))
    return f"{ns / unit_ns:g} {unit}"


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit of which it is a half or more steps."""
    for unit_bytes, unit in SIZES:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size_bytes} B"


def group_label(group: dict[str, Any]) -> str:
    """Return the common properties of the I/Os or requests of a group."""
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


def cause_texts(worst: dict[str, Any]) -> list[str]:
    """Return why it took so long, or where its time went if no fact accounts for that."""
    if not worst["causes"]:
        largest = worst["largest"]
        return [f"cause unknown, {time_text(largest['ns'])} in {largest['span']}"]
    return [cause["text"] for cause in worst["causes"]]
