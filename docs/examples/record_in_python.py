#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Record from Python and read it back: pip install ./device/python

python3 record_in_python.py DIRECTORY
"""

from __future__ import annotations

import json
import sys

import steadyio

SCHEMA = steadyio.Schema("Joint", "jsonschema", b'{"type":"object"}')
JOINT = steadyio.Topic("/joint", 128, period_s=0.001, encoding="json", schema=SCHEMA)
EVENTS = steadyio.Topic("/events", 256, ring_bytes=64 << 10)
STEPS = 1_000


def record(directory: str) -> None:
    """A topic that is known at the start, and one that comes later."""
    with steadyio.Recorder(directory, [JOINT], segment_bytes=8 << 20, segments=4) as recorder:
        joint = recorder.topic("/joint")
        events = recorder.declare(EVENTS)
        for step in range(STEPS):
            record = json.dumps({"step": step}).encode()
            # False: the ring is full. The record is counted as lost, and the loop goes on.
            if not joint.append(record) and step % 100 == 0:
                print("the device is too slow", file=sys.stderr)
        events.append(b"done")
        recorder.flush()
        for topic, account in recorder.ledger().items():
            print(f"{topic}: received {account.received.records}, lost {account.lost.records}")
    # Here everything is durable, or LostError was raised.


def main() -> int:
    """Print what is read, by topic."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    record(sys.argv[1])
    reading = steadyio.read(sys.argv[1])
    count: dict[str, int] = {}
    for message in reading:
        count[message.topic] = count.get(message.topic, 0) + 1
    print(count, reading.missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
