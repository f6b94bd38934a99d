# SPDX-License-Identifier: MIT OR Apache-2.0
"""A card at a moment of its write log, and its possible contents if power is lost at that moment.

Stable content is a sparse file that is advanced along the log. Writes that only the volatile cache
holds may be lost, whole, or torn, each by itself and in any order, because a card may write back in
any order. The operation in progress is torn: each of its sectors is new or old.
A sector itself is never torn. Discarded sectors keep their old content, the hardest case.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steady_lab.devices.power_cut.write_log import SECTOR_BYTES, Flags, Kind, Record, WriteLog
from steady_lab.errors import LabError

# The possible fates of the writes that only the volatile cache holds.
FATES = ("lost", "kept", "prefix", "newest", "random")


@dataclass(frozen=True)
class Cut:
    """Power is lost at `time_ns`: operations that finish later are in progress."""

    time_ns: int
    fate: str
    seed: int


@dataclass(frozen=True)
class Extent:
    """Consecutive sectors with new content."""

    sector: int
    data: bytes

    @property
    def end(self) -> int:
        """The sector behind it."""
        return self.sector + len(self.data) // SECTOR_BYTES

    def part(self, first: int, end: int) -> Extent:
        """Return the sectors first..end-1 of it."""
        start = (first - self.sector) * SECTOR_BYTES
        return Extent(first, self.data[start : start + (end - first) * SECTOR_BYTES])

    def without(self, first: int, end: int) -> Iterator[Extent]:
        """Yield the rest when the sectors first..end-1 are removed."""
        if end <= self.sector or first >= self.end:
            yield self
            return
        if self.sector < first:
            yield self.part(self.sector, first)
        if end < self.end:
            yield self.part(end, self.end)


class CutCard:
    """The card of a log, advanced from its beginning (`base`, or zeroes) to any moment."""

    def __init__(self, log: WriteLog, stable: Path, base: Path | None = None) -> None:
        self._log = log
        self._path = stable
        self._next = 0  # of log.records, not arrived yet
        self._under_way: list[Record] = []
        self._cached: list[Extent] = []  # in the order of writing
        self._time_ns = 0
        if base:
            copy_sparse(base, stable)
        else:
            stable.unlink(missing_ok=True)
        self._fd = os.open(stable, os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(self._fd, log.sectors * SECTOR_BYTES)

    def close(self) -> None:
        """Forget the stable content."""
        os.close(self._fd)
        self._path.unlink()

    def advance(self, time_ns: int) -> None:
        """Advance; raises LabError for an earlier time."""
        if time_ns < self._time_ns:
            raise LabError(f"{self._log.path}: cut at {time_ns} ns is earlier than the cut before")
        self._time_ns = time_ns
        records = self._log.records
        while self._next < len(records) and records[self._next].arrived_ns <= time_ns:
            self._under_way.append(records[self._next])
            self._next += 1
        for record in [record for record in self._under_way if record.finish_ns <= time_ns]:
            self._under_way.remove(record)
            self._finish(record)

    def write_cut(self, cut: Cut, image: Path) -> None:
        """Advance to the cut, and write the card's contents into a new sparse file."""
        self.advance(cut.time_ns)
        copy_sparse(self._path, image)
        chance = random.Random(f"{cut.seed} {cut.time_ns}")
        survivors = _survivors(self._cached, cut.fate, chance)
        for record in self._under_way:
            if Flags.CACHED in record.flags and cut.fate == "lost":
                continue
            survivors += _torn(self._touched(record), chance)
        with image.open("r+b") as stream:
            for extent in survivors:
                stream.seek(extent.sector * SECTOR_BYTES)
                stream.write(extent.data)

    def _touched(self, record: Record) -> Extent:
        if record.kind is Kind.WRITE:
            return Extent(record.sector, self._log.data(record))
        return Extent(record.sector, bytes(record.bytes if record.kind is Kind.ZERO else 0))

    def _finish(self, record: Record) -> None:
        if record.kind is Kind.POWER_OFF:
            self._cached.clear()
        elif record.kind is Kind.FLUSH:
            self._drain()
        elif record.kind is Kind.WRITE:
            if Flags.DRAINED in record.flags:
                self._drain()
            self._finish_write(record)
        else:
            self._uncache(record)
            self._write(self._touched(record))

    def _finish_write(self, record: Record) -> None:
        extent = self._touched(record)
        if Flags.CACHED in record.flags:
            self._cached.append(extent)
        else:
            self._uncache(record)
            self._write(extent)

    def _drain(self) -> None:
        for extent in self._cached:
            self._write(extent)
        self._cached.clear()

    def _uncache(self, record: Record) -> None:
        """A direct write makes the cache's data for these sectors out of date."""
        end = record.sector + record.sectors
        self._cached = [
            left for extent in self._cached for left in extent.without(record.sector, end)
        ]

    def _write(self, extent: Extent) -> None:
        at = extent.sector * SECTOR_BYTES
        if any(extent.data) or self._has_data(at, len(extent.data)):
            os.pwrite(self._fd, extent.data, at)

    def _has_data(self, at: int, length: int) -> bool:
        """Tell whether zeroes would change anything: a hole stays a hole."""
        try:
            return os.lseek(self._fd, at, os.SEEK_DATA) < at + length
        except OSError:  # a hole up to the end
            return False


def _survivors(cached: list[Extent], fate: str, chance: random.Random) -> list[Extent]:
    if fate == "lost":
        return []
    if fate == "kept":
        return list(cached)
    if fate == "prefix":
        return cached[: chance.randint(0, len(cached))]
    if fate == "newest":
        return cached[-1:]
    survivors: list[Extent] = []
    for extent in cached:
        whole = chance.choice(("lost", "kept", "torn"))
        if whole == "kept":
            survivors.append(extent)
        elif whole == "torn":
            survivors += _torn(extent, chance)
    return survivors


def _torn(extent: Extent, chance: random.Random) -> list[Extent]:
    """Return the sectors that made it: the first ones, the last ones, or any."""
    sectors = range(extent.sector, extent.end)
    if not sectors:
        return []
    edge = chance.randint(extent.sector, extent.end)
    how = chance.choice(("first", "last", "any"))
    if how == "first":
        return [extent.part(extent.sector, edge)]
    if how == "last":
        return [extent.part(edge, extent.end)]
    return [extent.part(sector, sector + 1) for sector in sectors if chance.random() < 0.5]


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file with its holes; shared where the file system can."""
    target.unlink(missing_ok=True)
    subprocess.run(
        ["cp", "--sparse=always", "--reflink=auto", str(source), str(target)], check=True
    )
