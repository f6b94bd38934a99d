# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady export` makes, as the official Python reader sees it."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from steady_lab.paths import BUILD

HEAD = b"\x89STEADY\x01"
BEGIN = struct.pack("<IB", 1, 2)
TOPICS = ["/camera/image", "/joint"]
STEADY = BUILD / "bin" / "steady"


def topic_frame(identifier: int) -> bytes:
    texts = [TOPICS[identifier].encode(), b"json", b"Number", b"jsonschema"]
    body = struct.pack("<BHIQ", 1, identifier, 1_000, 0)
    body += b"".join(struct.pack("<H", len(text)) + text for text in texts) + b"{}"
    return struct.pack("<I", len(body)) + body


def message(number: int) -> tuple[str, int, bytes]:
    """The images are 100 ms late."""
    time_ns = 10**9 + number * 10**6 - (number % 2 == 0) * 10**8
    return (TOPICS[number % 2], time_ns, f'{{"number":{number}}}'.encode().ljust(900))


@pytest.fixture
def recording(work: Path) -> Path:
    stream = HEAD + topic_frame(0) + topic_frame(1) + BEGIN
    for number in range(1_000):
        topic, time_ns, payload = message(number)
        body = struct.pack("<BHQ", 3, TOPICS.index(topic), time_ns) + payload
        stream += struct.pack("<I", len(body)) + body
    small = ["--segment-size", "512K", "--unit", "64K", "--segments", "4", "--no-lock", "--block"]
    source = ["--input", "-", "--framing", "frames", "--quiet", "--dir", str(work / "recording")]
    subprocess.run([str(STEADY), "record", *small, *source], input=stream, check=True)
    return work / "recording"


def export(recording: Path, *arguments: str) -> tuple[Path, Any]:
    out = recording.parent / "out.mcap"
    command = [str(STEADY), "export", "--json", "-o", str(out), str(recording), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return out, json.loads(done.stdout)


def messages(path: Path, seeking: bool) -> list[tuple[str, int, bytes]]:
    from mcap.reader import NonSeekingReader, SeekingReader

    kind = SeekingReader if seeking else NonSeekingReader
    with path.open("rb") as stream:
        # In the order of the file.
        found = kind(stream, validate_crcs=True).iter_messages(log_time_order=False)
        return [(channel.topic, message.log_time, message.data) for _, channel, message in found]


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_messages_stand_in_the_order_of_their_times(recording: Path, compression: str) -> None:
    out, summary = export(recording, "--compression", compression)
    sent = sorted((message(number) for number in range(1_000)), key=lambda sent: sent[1])
    # Where times are the same the order of the recording counts, which is that of `sent`.
    assert messages(out, seeking=False) == messages(out, seeking=True) == sent
    assert (summary["messages"], summary["out_of_order"]) == (1_000, 0)


def test_statistics_and_metadata_say_what_it_holds(recording: Path) -> None:
    from mcap.reader import make_reader

    out, summary = export(recording, "--topics", "/joint", "--from", "1.5")
    with out.open("rb") as stream:
        reader = make_reader(stream)
        found = reader.get_summary()
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
    assert found is not None and found.statistics is not None
    assert found.statistics.message_count == summary["messages"] == 250
    assert [channel.topic for channel in found.channels.values()] == ["/joint"]
    assert metadata["steadyio.export"]["from_ns"] == "1500000000"
    recorded = metadata["steadyio.recording"]
    assert recorded["recording_id"] == summary["recordings"][0]["recording_id"]
    assert (recorded["/joint.received"], recorded["/joint.lost"]) == ("500", "0")
