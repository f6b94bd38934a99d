# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady-lab direct-path` runs and compares with: experiments/direct/table1.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steady_lab.paths import PROJECT
from steady_lab.toml_table import NAME_PATTERN, Table, load_toml

SPEC = PROJECT / "experiments" / "direct" / "table1.toml"
SCHEMA = "steadyio.direct-path/1"
KIB_MAX = 16384
OPS = ("read", "write")
FILES = ("char", "block", "ext4", "nvme", "nvme-char")
# Of tests/bench/caller.c.
HOWS = (
    *("pread", "cached", "uring_fixed", "uring_cmd", "buffer"),
    *("pread+udmabuf", "buffer+udmabuf", "pread+dax", "uring_fixed+dax", "buffer+dax"),
)


@dataclass(frozen=True)
class Way:
    """A way to ask for data: of which file, and how (tests/bench/caller.c)."""

    name: str
    title: str
    file: str
    how: str


@dataclass(frozen=True)
class Published:
    """Speed and system time of a way in the paper, by size of call."""

    mib_s: dict[int, float]
    cpu: dict[int, float]

    def cpu_per_mib(self, kib: int) -> float:
        """Return the seconds of a core that a MiB costs."""
        return self.cpu[kib] / 100 / self.mib_s[kib]


@dataclass(frozen=True)
class DirectPath:
    """The whole spec."""

    device: Path
    sizes_kib: tuple[int, ...]
    total_mib: int
    calls_max: int
    counted_total_mib: int
    counted_calls_max: int
    ways: tuple[Way, ...]
    counted_ways: tuple[Way, ...]  # further ones, whose instructions are counted only
    nvme_ways: tuple[Way, ...]  # the same, on another drive
    published_kib: tuple[int, ...]
    published: dict[tuple[str, str], Published]


def load_direct_path(path: Path = SPEC) -> DirectPath:
    """Read the spec; raises SpecError."""
    table = Table(load_toml(path), str(path))
    table.choice("schema", (SCHEMA,))
    ways = tuple(_way(item) for item in table.tables("way"))
    published = table.table("published")
    kib = _sizes(published)
    rows = dict(_row(item, kib, ways) for item in published.tables("row"))
    published.close()
    spec = DirectPath(
        device=PROJECT / "experiments" / "devices" / f"{table.text('device', NAME_PATTERN)}.toml",
        sizes_kib=_sizes(table),
        total_mib=table.integer("total_mib", 1, 128),
        calls_max=table.integer("calls_max", 1, 1_000_000),
        counted_total_mib=table.integer("counted_total_mib", 1, 128),
        counted_calls_max=table.integer("counted_calls_max", 1, 1_000_000),
        ways=ways,
        counted_ways=tuple(_way(item) for item in table.tables("counted_way")),
        nvme_ways=tuple(_way(item) for item in table.tables("nvme_way")),
        published_kib=kib,
        published=rows,
    )
    table.close()
    return spec


def _way(table: Table) -> Way:
    way = Way(
        name=table.text("name", NAME_PATTERN),
        title=table.text("title"),
        file=table.choice("file", FILES),
        how=table.choice("how", HOWS),
    )
    table.close()
    return way


def _sizes(table: Table) -> tuple[int, ...]:
    sizes = table.items("sizes_kib", "sizes in KiB, multiples of 4")
    for kib in sizes:
        if not isinstance(kib, int) or not 4 <= kib <= KIB_MAX or kib % 4:
            raise table.fail("sizes_kib", f"sizes from 4 to {KIB_MAX} KiB, multiples of 4")
    return tuple(sizes)


def _row(
    table: Table, kib: tuple[int, ...], ways: tuple[Way, ...]
) -> tuple[tuple[str, str], Published]:
    way = table.choice("way", tuple(way.name for way in ways))
    op = table.choice("op", OPS)
    row = Published(_values(table, "mib_s", kib), _values(table, "cpu", kib))
    table.close()
    return (way, op), row


def _values(table: Table, key: str, kib: tuple[int, ...]) -> dict[int, float]:
    values = table.items(key, f"{len(kib)} numbers")
    if len(values) != len(kib) or not all(isinstance(value, float | int) for value in values):
        raise table.fail(key, f"{len(kib)} numbers, one for each size")
    return dict(zip(kib, map(float, values), strict=True))
