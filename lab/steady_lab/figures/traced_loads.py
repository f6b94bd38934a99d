# SPDX-License-Identifier: MIT OR Apache-2.0
"""Loads that are traced on a real kernel, and what a paper printed of the like.

Files are experiments/traces/NAME.toml, schema "steadyio.traced-loads/1". tests/bench/spans.py runs
them under `steady trace`; pages/spans.py shows what was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from steady_lab.errors import SpecError
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.toml_table import NAME_PATTERN, Table, load_toml

SCHEMA = "steadyio.traced-loads/1"
IOS_MAX = 1_000_000
SIZE_KIB_MAX = 1024
# Where the loads run: a file, and the device itself.
PLACES = {"ext4": "ext4 on a loop device", "raw": "The loop device itself"}


@dataclass(frozen=True)
class TracedLoad:
    """One way to read or write; `fio` are its options, `table` the spans printed of the like."""

    name: str
    title: str
    op: str
    fio: tuple[str, ...]
    table: str


@dataclass(frozen=True)
class PrintedShare:
    """The share of software that the paper prints for some loads of a size."""

    board: str
    size_kib: int
    loads: tuple[str, ...]
    software_percent: str


@dataclass(frozen=True)
class TracedLoads:
    """A whole spec; every load runs in every size and place."""

    name: str
    ios: int
    sizes_kib: tuple[int, ...]
    loads: tuple[TracedLoad, ...]
    printed: tuple[PrintedShare, ...]

    def printed_share(self, board: str, size_kib: int, load: str) -> str:
        """Return what is printed of a load, or "-"."""
        found = (
            item.software_percent
            for item in self.printed
            if (item.board, item.size_kib) == (board, size_kib) and load in item.loads
        )
        return next(found, "-")

    @property
    def boards(self) -> tuple[str, ...]:
        """Return the boards of which something is printed."""
        return tuple(dict.fromkeys(item.board for item in self.printed))


def load_traced_loads(name: str) -> TracedLoads:
    """Read experiments/traces/NAME.toml; raises SpecError."""
    path = EXPERIMENTS / "traces" / f"{name}.toml"
    spec = Table(load_toml(path), str(path))
    spec.choice("schema", (SCHEMA,))
    sizes_kib = spec.items("sizes_kib", "whole numbers of KiB")
    if not all(type(kib) is int and 1 <= kib <= SIZE_KIB_MAX for kib in sizes_kib):
        raise spec.fail("sizes_kib", f"whole numbers from 1 to {SIZE_KIB_MAX}")
    loads = TracedLoads(
        name=spec.text("name", NAME_PATTERN),
        ios=spec.integer("ios", 1, IOS_MAX),
        sizes_kib=tuple(sizes_kib),
        loads=tuple(map(_load, spec.tables("load"))),
        printed=tuple(map(_printed, spec.tables("published"))),
    )
    spec.close()
    known = {load.name for load in loads.loads}
    for item in loads.printed:
        if not known.issuperset(item.loads) or item.size_kib not in loads.sizes_kib:
            raise SpecError(f"{path}: [[published]] of {item}: no such load or size")
    return loads


def _load(table: Table) -> TracedLoad:
    load = TracedLoad(
        name=table.text("name", NAME_PATTERN),
        title=table.text("title"),
        op=table.choice("op", ("read", "write")),
        fio=tuple(map(str, table.items("fio", "options of fio"))),
        table=table.text("table", default=""),
    )
    table.close()
    return load


def _printed(table: Table) -> PrintedShare:
    item = PrintedShare(
        board=table.text("board"),
        size_kib=table.integer("size_kib", 1, SIZE_KIB_MAX),
        loads=tuple(map(str, table.items("loads", "names of loads"))),
        software_percent=table.text("software_percent"),
    )
    table.close()
    return item
