# SPDX-License-Identifier: MIT OR Apache-2.0
"""Declarations, and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Schema:
    """What the records of a topic are, as MCAP has it.

    name: of the type, "sensor_msgs/msg/Imu" for example. encoding: language of the definition,
    "jsonschema" or "ros2msg" for example. data: the definition.
    """

    name: str
    encoding: str = ""
    data: bytes = b""


@dataclass(frozen=True)
class Topic:
    """A stream of records.

    record_bytes_max: longest record, in bytes. period_s: time between records; None: irregular.
    encoding: of the records, "json" or "cdr" for example. metadata: free keys and values.
    latched: the last record is written again into each new segment, so that a ring that has wrapped
    can be replayed. ring_bytes: memory between append() and the writer thread; None: one second
    of records, or of topics without a period their share of 32 MiB.
    """

    name: str
    record_bytes_max: int
    period_s: float | None = None
    encoding: str = ""
    schema: Schema | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    ring_bytes: int | None = None
    latched: bool = False


class Amount(NamedTuple):
    """Records, and their bytes without anything that the format adds."""

    records: int
    bytes: int


class Account(NamedTuple):
    """What became of a topic's records: received = buffered + written + both kinds of lost."""

    received: Amount
    buffered: Amount
    written: Amount
    """Durable or not."""
    durable: Amount
    """Of those written: on the medium."""
    lost_ring_full: Amount
    """The ring was full, or the record too long."""
    lost_in_writing: Amount
    """The device or the file system failed."""
    last_received_ns: int | None
    """Log times; None if there is no such record."""
    last_durable_ns: int | None
    first_lost_ns: int | None
    """Of the records for which the ring was full."""
    last_lost_ns: int | None
    ring_used_bytes: int
    """When the writer thread looked last."""
    ring_used_bytes_max: int

    @property
    def lost(self) -> Amount:
        """For whatever reason."""
        full, writing = self.lost_ring_full, self.lost_in_writing
        return Amount(full.records + writing.records, full.bytes + writing.bytes)


class Stats(NamedTuple):
    """How a recording goes."""

    state: str
    """"recording"; "waiting": the device fails, and records wait in the rings; or "ended"."""
    trouble: str | None
    """What failed last, or why recording ended."""
    poll_gap_ns_max: int
    """Longest time between two looks of the writer thread at the rings."""
    durable_lag_ns: int
    """From an append to its record being durable, at the latest sync."""
    durable_lag_ns_max: int
    window_exceeded: int
    """Syncs that came later than the loss window allows."""
    rotations: int
    """Changes to another segment."""
    device_bytes: int
    """Handed to the device, with format and padding."""
    failed_segments: int
    """Left before they were full, because a part cannot be written or is gone."""
    failures: int
    """Writes and syncs that failed."""


class Missing(NamedTuple):
    """Recorded data that could not be read."""

    blocks: int
    """Between blocks that are there, or changed since they were written."""
    bytes: int
    durable_blocks: int
    """Of the blocks, those that had been durable."""
    unreadable_bytes: int
    """What the device could not read, whether it had been data or not."""
    overwritten_blocks: int
    """A recorder has overwritten them meanwhile."""
    overwritten_segments: int
    messages: int = 0
    """In damaged blocks, and in segments that are damaged or gone; at most so many."""


class RecordedAccount(NamedTuple):
    """Records of a topic, from the beginning of its recording to the last account that was read."""

    received: int
    written: int
    durable: int
    lost: int


class Recording(NamedTuple):
    """A recording of which segments were read."""

    recording_id: str
    created_ns: int
    """Of the first of these segments."""
    segments: int
    topics: dict[str, RecordedAccount]
