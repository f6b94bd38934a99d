# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of the ways to a card's data (figures/direct_path.py), and the paper's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from steady_lab.figures.direct_path import FRAGMENTED, SCATTERED_KIB, Result
from steady_lab.figures.direct_path_spec import OPS, DirectPath, Way
from steady_lab.figures.direct_stages import Stages
from steady_lab.figures.table import TextTable, format_number

LATENCY_KIB = (40, 80)
# What one command to the emulated card transfers at most.
COMMAND_KIB = 512
# The way whose CPU time per MiB is 1.
BASE = "block-direct"
Found = dict[tuple[str, str, int], Result]


def sequential(results: Iterable[Result]) -> Found:
    """Return the sequential ones by way, direction and size."""
    return {
        (r.case.way.name, r.case.op, r.case.kib): r for r in results if r.case.order == "sequential"
    }


def timed_tables(spec: DirectPath, results: Sequence[Result]) -> list[TextTable]:
    """Return speed, the paper's next to it, commands, and the times of Figure 3's calls."""
    found = sequential(results)
    tables = []
    for op in OPS:
        tables.append(_table(spec, found, f"Speed of {op}s, MiB/s", op, _speed))
        tables.append(_published_speed(spec, found, op))
    tables += [_table(spec, found, f"Commands per {op}", op, _commands) for op in OPS]
    return [*tables, _scattered(spec, results), _latencies(spec, found)]


def counted_tables(spec: DirectPath, results: Sequence[Result]) -> list[TextTable]:
    """Return instructions per call, and per MiB next to O_DIRECT's, with the paper's CPU time."""
    found = sequential(results)
    tables = []
    for op in OPS:
        caption = f"Instructions per {op}"
        ways = (*spec.ways, *spec.counted_ways)
        tables.append(_table(spec, found, caption, op, _per_call, ways))
        tables.append(_published_cpu(spec, found, op))
    return tables


def nvme_table(spec: DirectPath, results: Sequence[Result]) -> TextTable:
    """Return instructions per read of an NVMe drive."""
    found = {(r.case.way.name, r.case.op, r.case.kib): r for r in results}
    return _table(spec, found, "NVMe, instructions per read", "read", _per_call, spec.nvme_ways)


def stages_table(found: Sequence[Stages]) -> TextTable:
    """Return the cost of a read up to the command, in the handler, and up to the program."""
    body = [
        [
            f"{stages.way.title}, {_size(stages.kib)}",
            *(f"{part:.0f}" for part in (*stages.parts, sum(stages.parts))),
            str(stages.calls),
        ]
        for stages in sorted(found, key=lambda stages: stages.kib)
    ]
    parts = ("call to command", "interrupt to end of command", "to the program")
    heads = ["", *parts, "together", "calls"]
    return TextTable("Instructions of a read by stage", heads, body)


def missed(results: Sequence[Result]) -> list[str]:
    """Return where the character device sends other commands than calculated, or is slower."""
    found = sequential(results)
    lines = []
    for (name, op, kib), result in found.items():
        if result.case.way.file != "char":
            continue
        calculated = -(-kib // COMMAND_KIB)
        if not calculated == result.least == result.most == result.commands_per_call:
            lines.append(
                f"{name}, {op} of {kib} KiB: {_commands(result)} commands, not {calculated}"
            )
        direct = found.get((BASE, op, kib))
        if direct and result.mib_s < 0.99 * direct.mib_s:
            lines.append(f"{name}, {op} of {kib} KiB: {result.mib_s:.1f} MiB/s, {direct.mib_s:.1f}")
    return lines


def _table(
    spec: DirectPath,
    found: Found,
    caption: str,
    op: str,
    cell: Callable[[Result], str],
    ways: Sequence[Way] | None = None,
) -> TextTable:
    sizes = [kib for kib in spec.sizes_kib if any(key[1:] == (op, kib) for key in found)]
    body = [
        [way.title, *(cell(found[way.name, op, kib]) for kib in sizes)]
        for way in ways or spec.ways
        if (way.name, op, sizes[0]) in found
    ]
    return TextTable(caption, ["", *map(_size, sizes)], body)


def _speed(result: Result) -> str:
    return format_number(result.mib_s)


def _per_call(result: Result) -> str:
    return f"{result.per_call:.0f}"


def _commands(result: Result) -> str:
    """Return the mean, and the least and most where calls differ."""
    mean = f"{result.commands_per_call:.3f}".rstrip("0").rstrip(".")
    same = result.least == result.most
    return mean if same else f"{mean} ({result.least} to {result.most})"


def _published_speed(spec: DirectPath, found: Found, op: str) -> TextTable:
    def cell(way: Way, kib: int) -> str:
        paper = spec.published[way.name, op].mib_s[kib]
        return f"{format_number(found[way.name, op, kib].mib_s)} / {paper:g}"

    return _here_and_paper(spec, found, op, f"The same: here / paper, {op}s, MiB/s", cell)


def _published_cpu(spec: DirectPath, found: Found, op: str) -> TextTable:
    def per_mib(name: str, kib: int) -> float:
        return found[name, op, kib].per_call / kib

    def cell(way: Way, kib: int) -> str:
        ours = per_mib(way.name, kib) / per_mib(BASE, kib)
        paper = spec.published[way.name, op].cpu_per_mib(kib)
        base = spec.published[BASE, op].cpu_per_mib(kib)
        return f"{ours:.2f} / {paper / base:.2f}"

    caption = f"CPU per MiB of {op}s, O_DIRECT on the block device = 1: here / paper"
    return _here_and_paper(spec, found, op, caption, cell)


def _here_and_paper(
    spec: DirectPath, found: Found, op: str, caption: str, cell: Callable[[Way, int], str]
) -> TextTable:
    sizes = [kib for kib in spec.published_kib if (BASE, op, kib) in found]
    body = [
        [way.title, *(cell(way, kib) for kib in sizes)]
        for way in spec.ways
        if (way.name, op) in spec.published and (way.name, op, sizes[0]) in found
    ]
    return TextTable(caption, ["", *map(_size, sizes)], body)


def _scattered(spec: DirectPath, results: Sequence[Result]) -> TextTable:
    found = {(r.case.way, r.case.kib): r for r in results if r.case.order == "random"}
    body = [
        [way.title, *(_commands(found[way, kib]) for kib in SCATTERED_KIB)]
        for way in (*spec.ways, *FRAGMENTED)
        if (way, SCATTERED_KIB[0]) in found
    ]
    return TextTable("Commands per read at a random place", ["", *map(_size, SCATTERED_KIB)], body)


def _latencies(spec: DirectPath, found: Found) -> TextTable:
    sizes = [kib for kib in LATENCY_KIB if kib in spec.sizes_kib]
    body = []
    for way in spec.ways:
        line = [way.title]
        for kib in sizes:
            result = found[way.name, "read", kib]
            line += [f"{result.per_call / 1000:.0f}", _commands(result)]
        body.append(line)
    heads = [head for kib in sizes for head in (f"{_size(kib)}, us", "commands")]
    return TextTable("Sequential reads of Figure 3's sizes", ["", *heads], body)


def _size(kib: int) -> str:
    return f"{kib // 1024} MiB" if kib >= 1024 else f"{kib} KiB"
