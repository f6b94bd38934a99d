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
from dataclasses import dataclass
from heapq import merge
from pathlib import Path
from typing import Any

from mcap.exceptions import McapError
from mcap.reader import SeekingReader


@dataclass
class Topic:
    """What was seen of a topic."""

    records: int = 0
    record_bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    lost: int = 0
    next_sequence: int | None = None

    def add(self, message: Any) -> None:
        """Sequence numbers count every record that was appended, also those that were lost."""
        if self.next_sequence is not None:
            self.lost += message.sequence - self.next_sequence & 0xFFFFFFFF
        else:
            self.first_ns = message.log_time
        self.next_sequence = message.sequence + 1
        self.records += 1
        self.record_bytes += len(message.data)
        self.last_ns = message.log_time


def segments(directory: Path, files: ExitStack) -> list[SeekingReader]:
    """Finished segments. Others were never recorded to, are in use, or were cut off."""
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
            readers.append(reader)
    return readers


def messages(readers: list[SeekingReader], topic: str | None) -> Iterator[tuple[str, Any]]:
    """All records, oldest first: segments are recycled, so their names say nothing about time."""
    topics = [topic] if topic else None
    streams = [reader.iter_messages(topics=topics) for reader in readers]
    for _, channel, message in merge(*streams, key=lambda item: item[2].log_time):
        yield channel.topic, message


def main() -> int:
    """Print a table, or one topic."""
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    directory, topic = Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) == 3 else None)
    topics: dict[str, Topic] = {}
    with ExitStack() as files:
        for name, message in messages(segments(directory, files), topic):
            if topic:
                print(message.log_time, message.data.decode(errors="replace"))
            topics.setdefault(name, Topic()).add(message)
    if not topics:
        print(f"{directory}: no finished segment with records", file=sys.stderr)
        return 1
    if topic is None:
        print("topic records bytes lost seconds")
        for name, seen in sorted(topics.items()):
            seconds = (seen.last_ns - seen.first_ns) / 1e9
            print(name, seen.records, seen.record_bytes, seen.lost, f"{seconds:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
