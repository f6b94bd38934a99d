# SPDX-License-Identifier: MIT OR Apache-2.0
"""The maps of a trace: latency over time and over offsets, of each device's reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.pages.latency_map import (
    SECTOR_BYTES,
    latency_rows,
    offset_columns,
    time_columns,
)
from steady_lab.pages.latency_picture import Across, LatencyPicture, latency_picture
from steady_lab.pages.trace_rows import OPERATIONS, OPTION, TracedIo
from steady_lab.pages.trace_words import (
    SIZES,
    TIMES,
    round_time_text,
    size_text,
    time_text,
    worst_label,
)

IOS_MIN = 20  # fewer are better read in tables
GROUPS_MAX = 6  # with two maps each
TICKS_PER_UNIT_MAX = 5


@dataclass(frozen=True)
class TraceMaps:
    """The maps that are shown, and how many reads or writes of a device have none."""

    pictures: list[LatencyPicture]
    hidden: str


@dataclass(frozen=True)
class View:
    """What a map has from left to right, and where an I/O is there."""

    over: str
    across: Across
    step: str
    place: Callable[[TracedIo], int]


def trace_maps(ios: Sequence[TracedIo], worst: Sequence[dict[str, Any]]) -> TraceMaps:
    """Return the maps of a trace's I/Os; `worst` are those to mark, in the table's order."""
    groups: dict[tuple[str, str], list[TracedIo]] = {}
    for io in ios:
        groups.setdefault((io.device, io.op), []).append(io)
    large = [key for key, own in groups.items() if len(own) >= IOS_MIN]
    shown = sorted(sorted(large, key=lambda key: (-len(groups[key]), key))[:GROUPS_MAX])
    pictures = []
    for device, op in shown:
        same_device = [io for key in shown if key[0] == device for io in groups[key]]
        views = [_over_time(ios), _over_offsets(same_device)]
        pictures += [_picture(groups[device, op], view, worst) for view in views]
    few, more = len(groups) - len(large), len(large) - len(shown)
    hidden = [f"{few} with fewer than {IOS_MIN} I/Os"] if few else []
    hidden += [f"{more} with fewer I/Os than those shown"] if more else []
    return TraceMaps(pictures, ", ".join(hidden))


def refuse_other_trace(
    path: Path, ios: Sequence[TracedIo], worst: Sequence[dict[str, Any]]
) -> None:
    """Raise LabError if none of a record's longest is among the rows of a file."""
    wanted = {_as_row(each) for each in worst if each["op"] in OPERATIONS}
    if wanted and wanted.isdisjoint(ios):
        raise LabError(
            f"{OPTION} {path}: has none of the longest reads and writes of the record: write both "
            "with one `steady trace --json --csv FILE`"
        )


def _over_time(ios: Sequence[TracedIo]) -> View:
    begin_ns = min(io.at_ns for io in ios)
    columns = time_columns(max(io.at_ns for io in ios) - begin_ns)
    across = Across("Time since the first I/O", columns, *_unit(columns.tick_step, TIMES, "ns"))
    return View("time", across, round_time_text(columns.step), lambda io: io.at_ns - begin_ns)


def _over_offsets(ios: Sequence[TracedIo]) -> View:
    offsets = [io.sector * SECTOR_BYTES for io in ios]
    columns = offset_columns(min(offsets), max(offsets))
    across = Across("Offset on the device", columns, *_unit(columns.tick_step, SIZES, "B"))
    return View("offsets", across, size_text(columns.step), lambda io: io.sector * SECTOR_BYTES)


def _picture(
    ios: Sequence[TracedIo], view: View, worst: Sequence[dict[str, Any]]
) -> LatencyPicture:
    rows, own = latency_rows(io.total_ns for io in ios), set(ios)
    marked = {n: (_as_row(each), _name(n, each)) for n, each in enumerate(worst, 1)}
    factor = 10 ** (1 / rows.per_decade)
    return latency_picture(
        f"{len(ios)} {ios[0].op}s of {ios[0].device} over {view.over}: a column is {view.step}, "
        f"a row a factor of {factor:.3g}",
        view.across,
        rows,
        [(view.place(io), io.total_ns) for io in ios],
        {n: ((view.place(io), io.total_ns), name) for n, (io, name) in marked.items() if io in own},
    )


def _name(number: int, worst: dict[str, Any]) -> str:
    return f"{number}. {worst_label(worst)}: {time_text(worst['total_ns'])}"


def _as_row(worst: dict[str, Any]) -> TracedIo:
    return TracedIo(*(worst[key] for key in TracedIo._fields))


def _unit(tick_step: int, units: Sequence[tuple[int, str]], smallest: str) -> tuple[int, str]:
    """Return the largest unit that does not take more ticks than TICKS_PER_UNIT_MAX."""
    fitting = (unit for unit in units if tick_step * TICKS_PER_UNIT_MAX >= unit[0])
    return next(fitting, (1, smallest))
