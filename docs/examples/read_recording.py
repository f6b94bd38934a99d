#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Read a recording with the official MCAP library: pip install mcap

python3 read_recording.py DIRECTORY           what is in it, by topic
python3 read_recording.py DIRECTORY /imu      the records of one topic, oldest first

A recording that was cut off needs `steady recover DIRECTORY` first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Any

from mcap.exceptions import McapError
from mcap.reader import SeekingReader


@dataclass
class Counted:
    """A topic in one recording: each numbers its records from 1, also those that were lost."""

    records: int = 0
    first: int = 0
    last: int = 0
    newest: int = 0

    def add(self, sequence: int) -> None:
        """Numbers have 32 bits and wrap; records need not come in their order."""
        if not self.records:
            self.first = self.last = self.newest = sequence
        self.newest += (sequence - self.newest + 2**31) % 2**32 - 2**31
        self.first, self.last = min(self.first, self.newest), max(self.last, self.newest)
        self.records += 1


@dataclass
class Topic:
    """Figures of a topic."""

    record_bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    recordings: dict[str, Counted] = field(default_factory=dict)

    def add(self, recording: str, message: Any) -> None:
        """Messages come in the order of their times."""
        if not self.recordings:
            self.first_ns = message.log_time
        self.last_ns = message.log_time
        self.record_bytes += len(message.data)
        self.recordings.setdefault(recording, Counted()).add(message.sequence)

    def records(self) -> int:
        """Of all recordings."""
        return sum(counted.records for counted in self.recordings.values())

    def lost(self) -> int:
        """Between the first and the last record of each recording that are there."""
        recordings = self.recordings.values()
        return sum(counted.last - counted.first + 1 - counted.records for counted in recordings)


def segments(directory: Path, files: ExitStack) -> list[tuple[str, SeekingReader]]:
    """Finished segments, each with the id of its recording. Others are in use or were cut off."""
    readers = []
    for path in sorted(directory.glob("*.mcap")):
        stream = files.enter_context(path.open("rb"))
        try:
            reader = SeekingReader(stream, validate_crcs=True)
            summary = reader.get_summary()
        except McapError as error:
            print(f"{path.name}: left out: {type(error).__name__}", file=sys.stderr)
            continue
        if summary is not None and summary.statistics and summary.statistics.message_count:
            metadata = {record.name: record.metadata for record in reader.iter_metadata()}
            recording = metadata.get("steadyio.segment", {}).get("recording_id", path.name)
            readers.append((recording, reader))
    return readers


Item = tuple[str, str, Any]


def messages(readers: list[tuple[str, SeekingReader]], topic: str | None) -> Iterator[Item]:
    """All records as (recording, topic, message), oldest first: segments are recycled, so their
    names say nothing about time."""
    topics = [topic] if topic else None

    def of_segment(recording: str, reader: SeekingReader) -> Iterator[Item]:
        for _, channel, message in reader.iter_messages(topics=topics):
            yield recording, channel.topic, message

    streams = [of_segment(recording, reader) for recording, reader in readers]
    return merge(*streams, key=lambda item: item[2].log_time)


def main() -> int:
    """Print a table, or one topic."""
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    directory, topic = Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) == 3 else None)
    topics: dict[str, Topic] = {}
    with ExitStack() as files:
        for recording, name, message in messages(segments(directory, files), topic):
            if topic:
                print(message.log_time, message.data.decode(errors="replace"))
            topics.setdefault(name, Topic()).add(recording, message)
    if not topics:
        print(f"{directory}: no finished segment with records", file=sys.stderr)
        return 1
    if topic is None:
        print("topic records bytes lost seconds")
        for name, seen in sorted(topics.items()):
            seconds = (seen.last_ns - seen.first_ns) / 1e9
            print(name, seen.records(), seen.record_bytes, seen.lost(), f"{seconds:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
