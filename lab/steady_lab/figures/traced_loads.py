# SPDX-License-Identifier: MIT OR Apache-2.0
"""Loads that are traced on real kernels, with a paper's numbers for similar ones.

Files are experiments/traces/NAME.toml, schema "steadyio.traced-loads/2". tests/bench/spans.py runs
them under `steady trace`, on this machine and in the lab; pages/spans.py shows the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import SpecError
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.targets.qemu import INSTRUCTION_NS
from steady_lab.toml_table import NAME_PATTERN, Table, load_toml

SCHEMA = "steadyio.traced-loads/2"
IOS_MAX = 1_000_000
SIZE_KIB_MAX = 1024
RUNS_MAX = 99


@dataclass(frozen=True)
class TracedLoad:
    """One way to read or write; `fio` are its options, `table` the spans printed of the like."""

    name: str
    title: str
    op: str
    fio: tuple[str, ...]
    table: str


@dataclass(frozen=True)
class Place:
    """Where every load runs, in these sizes; `ios` are of a run, by size in KiB.

    In the lab, on the emulated card `device`, and a host that takes `instruction_ns` for each
    instruction; else on a loop device of this machine. On `ext4`, or the device itself. `board`:
    of which the paper prints something that compares.
    """

    name: str
    title: str
    ext4: bool
    ios: dict[int, int]
    device: Path | None
    instruction_ns: int
    board: str


@dataclass(frozen=True)
class PrintedShare:
    """The share of software that the paper prints for some loads of a size."""

    board: str
    size_kib: int
    loads: tuple[str, ...]
    software_percent: str


@dataclass(frozen=True)
class TracedLoads:
    """A whole spec; every load runs `runs` times in every place and size."""

    name: str
    runs: int
    places: tuple[Place, ...]
    loads: tuple[TracedLoad, ...]
    printed: tuple[PrintedShare, ...]

    def printed_share(self, board: str, size_kib: int, load: str) -> str:
        """Return the published value of a load, or "-"."""
        found = (
            item.software_percent
            for item in self.printed
            if (item.board, item.size_kib) == (board, size_kib) and load in item.loads
        )
        return next(found, "-")


def load_traced_loads(name: str) -> TracedLoads:
    """Read experiments/traces/NAME.toml; raises SpecError."""
    path = EXPERIMENTS / "traces" / f"{name}.toml"
    spec = Table(load_toml(path), str(path))
    spec.choice("schema", (SCHEMA,))
    loads = TracedLoads(
        name=spec.text("name", NAME_PATTERN),
        runs=spec.integer("runs", 1, RUNS_MAX),
        places=tuple(map(_place, spec.tables("place"))),
        loads=tuple(map(_load, spec.tables("load"))),
        printed=tuple(map(_printed, spec.tables("published"))),
    )
    spec.close()
    known = {load.name for load in loads.loads}
    sizes = {(place.board, kib) for place in loads.places for kib in place.ios}
    for item in loads.printed:
        if not known.issuperset(item.loads) or (item.board, item.size_kib) not in sizes:
            raise SpecError(f"{path}: [[published]] of {item}: no such load or size")
    return loads


def _place(table: Table) -> Place:
    device = table.text("device", NAME_PATTERN, default="")
    instruction_ns = table.integer("instruction_ns", 1, INSTRUCTION_NS[-1]) if device else 0
    if device and instruction_ns not in INSTRUCTION_NS:
        raise table.fail("instruction_ns", "a power of two")
    place = Place(
        name=table.text("name", NAME_PATTERN),
        title=table.text("title"),
        ext4=table.flag("ext4"),
        ios=dict(map(_size, table.tables("size"))),
        device=EXPERIMENTS / "devices" / f"{device}.toml" if device else None,
        instruction_ns=instruction_ns,
        board=table.text("board", default=""),
    )
    table.close()
    return place


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
