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
    """A whole spec; every load runs in every place and size. `ios` are of a run, by size in KiB."""

    name: str
    ios: dict[int, int]
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
    def sizes_kib(self) -> tuple[int, ...]:
        """Return the sizes."""
        return tuple(self.ios)

    @property
    def boards(self) -> tuple[str, ...]:
        """Return the boards of which something is printed."""
        return tuple(dict.fromkeys(item.board for item in self.printed))


def load_traced_loads(name: str) -> TracedLoads:
    """Read experiments/traces/NAME.toml; raises SpecError."""
    path = EXPERIMENTS / "traces" / f"{name}.toml"
    spec = Table(load_toml(path), str(path))
    spec.choice("schema", (SCHEMA,))
    loads = TracedLoads(
        name=spec.text("name", NAME_PATTERN),
        ios=dict(map(_size, spec.tables("size"))),
        loads=tuple(map(_load, spec.tables("load"))),
        printed=tuple(map(_printed, spec.tables("published"))),
    )
    spec.close()
    known = {load.name for load in loads.loads}
    for item in loads.printed:
        if not known.issuperset(item.loads) or item.size_kib not in loads.sizes_kib:
            raise SpecError(f"{path}: [[published]] of {item}: no such load or size")
    return loads


def _size(table: Table) -> tuple[int, int]:
    kib, ios = table.integer("kib", 1, SIZE_KIB_MAX), table.integer("ios", 1, IOS_MAX)
    table.close()
    return kib, ios


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
