# SPDX-License-Identifier: MIT OR Apache-2.0
"""Read a device's write log (lab/devices/media/media_log.c; its layout is in docs/devices.md)."""

from __future__ import annotations

import enum
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError

SECTOR_BYTES = 512

_HEADER = struct.Struct("<8sQII")
_HEADER_MAGIC = b"EMMCLOG1"
_RECORD = struct.Struct("<IHHQQQQQII")
_RECORD_MAGIC = 0x52434D45


class WriteLogError(LabError):
    """Not a write log, or a damaged one."""


class Kind(enum.IntEnum):
    """Kind of an operation."""

    WRITE = 1
    ZERO = 2
    DISCARD = 3
    FLUSH = 4
    POWER_OFF = 5


class Flags(enum.IntFlag):
    """Flags of an operation."""

    CACHED = 1  # only the volatile cache holds it
    DURABLE = 2  # the host asked for it: FUA
    DRAINED = 4  # data cached before became stable
    ZEROES = 8  # the log keeps no data for it


@dataclass(frozen=True)
class Record:
    """One operation: begun at `arrived_ns`, done at `finish_ns`, both CLOCK_MONOTONIC."""

    sequence: int
    kind: Kind
    flags: Flags
    sector: int
    sectors: int
    arrived_ns: int
    finish_ns: int
    data_at: int  # offset in the log

    @property
    def bytes(self) -> int:
        """Byte range of the card."""
        return self.sectors * SECTOR_BYTES


class WriteLog:
    """An open log: its records in the order of the card, and the data of its writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as stream:
            if stream.seek(0, 2) < _HEADER.size:
                raise WriteLogError(f"{path}: too short to be a write log")
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        magic, self.sectors, self.cache_kib, self.queue_depth = _HEADER.unpack_from(self._map)
        if magic != _HEADER_MAGIC:
            raise WriteLogError(
                f"{path}: not a write log (begins with {magic!r}, not {_HEADER_MAGIC!r})"
            )
        self.records = tuple(self._read())

    def _read(self) -> Iterator[Record]:
        """Yield all complete records; a guest that was killed leaves an incomplete last one."""
        at = _HEADER.size
        while at + _RECORD.size <= len(self._map):
            magic, kind, flags, sequence, sector, sectors, arrived_ns, finish_ns, data_bytes, _ = (
                _RECORD.unpack_from(self._map, at)
            )
            data_at = at + _RECORD.size
            at = data_at + data_bytes
            if at > len(self._map):
                return
            record = Record(
                sequence, Kind(kind), Flags(flags), sector, sectors, arrived_ns, finish_ns, data_at
            )
            has_data = record.kind is Kind.WRITE and Flags.ZEROES not in record.flags
            if magic != _RECORD_MAGIC or data_bytes != (record.bytes if has_data else 0):
                raise WriteLogError(f"{self.path}: damaged at byte {data_at - _RECORD.size}")
            yield record

    def data(self, record: Record) -> bytes:
        """Return the data of a write."""
        if Flags.ZEROES in record.flags:
            return bytes(record.bytes)
        return self._map[record.data_at : record.data_at + record.bytes]
