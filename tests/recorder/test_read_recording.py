# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python example reads the records of a Python producer from a pipe, and shows losses."""

import struct
import subprocess
import sys
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT

EXAMPLE = PROJECT / "docs" / "examples" / "read_recording.py"
HEAD = b"\x89STEADY\x01"
BEGIN = struct.pack("<IB", 1, 2)


def topic_frame(identifier: int, topic: str, record_bytes_max: int) -> bytes:
    """By docs/spec/record-framing-1.md, and by nothing else."""
    texts = [topic.encode(), b"json", b"Number", b"jsonschema"]
    body = struct.pack("<BHIQ", 1, identifier, record_bytes_max, 0)
    body += b"".join(struct.pack("<H", len(text)) + text for text in texts) + b"{}"
    return struct.pack("<I", len(body)) + body


def record_frame(identifier: int, log_time_ns: int, payload: bytes) -> bytes:
    body = struct.pack("<BHQ", 3, identifier, log_time_ns) + payload
    return struct.pack("<I", len(body)) + body


def record(directory: Path, stream: bytes, *arguments: str) -> int:
    small = ["--segment-size", "512K", "--unit", "64K", "--segments", "3", "--no-lock"]
    source = ["--input", "-", *arguments, "--quiet", "--dir", str(directory)]
    command = [str(BUILD / "bin" / "steady"), "record", *small, *source]
    return subprocess.run(command, input=stream, stdout=subprocess.DEVNULL).returncode


def read(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True)


def test_the_table_and_the_records_of_a_topic(work: Path) -> None:
    stream = HEAD + topic_frame(1, "/a", 2_000) + topic_frame(2, "/b", 2_000) + BEGIN
    for number in range(500):
        payload = f'{{"number":{number}}}'.encode()
        stream += record_frame(1 + number % 2, 10**9 + number * 10**6, payload.ljust(1_000))
    directory = work / "recording"
    assert record(directory, stream, "--framing", "frames") == 0
    table = read(directory)
    assert table.returncode == 0, table.stderr
    rows = ["/a 250 250000 0 0.498", "/b 250 250000 0 0.498"]
    assert table.stdout.splitlines() == ["topic records bytes lost seconds", *rows]
    lines = read(directory, "/b").stdout.splitlines()
    expected = [(10**9 + number * 10**6, f'{{"number":{number}}}') for number in range(1, 500, 2)]
    times_and_texts = [line.rstrip().split(" ", 1) for line in lines]
    assert [(int(time), text) for time, text in times_and_texts] == expected


def test_topics_that_a_stream_adds_are_read_from_the_first_byte_and_through_the_index(
    work: Path,
) -> None:
    from mcap.reader import NonSeekingReader, SeekingReader

    stream = HEAD + topic_frame(1, "/a", 2_000) + BEGIN
    for number in range(1, 21):
        late = topic_frame(number + 1, f"/late/{number}", 2_000)
        stream += record_frame(1, number, b"a") + late + record_frame(number + 1, number, b"late")
    directory = work / "recording"
    assert record(directory, stream, "--framing", "frames") == 0
    segment = directory / "segment-00000.mcap"
    for kind in (NonSeekingReader, SeekingReader):
        with segment.open("rb") as file:
            read = kind(file, validate_crcs=True).iter_messages()
            found = [(channel.topic, message.log_time) for _, channel, message in read]
        sent = [(topic, n) for n in range(1, 21) for topic in ("/a", f"/late/{n}")]
        assert sorted(found) == sorted(sent)


def test_lost_records_show_as_gaps(work: Path) -> None:
    directory = work / "recording"
    # The second line is longer than --size.
    assert record(directory, b"one\nlonger\nthree\n", "--size", "5") == 3
    assert read(directory).stdout.splitlines()[1].startswith("/lines 2 8 1 ")


def test_each_recording_in_a_directory_counts_for_itself(work: Path) -> None:
    directory = work / "recording"
    # The second record of the first recording is longer than --size; the second one loses none.
    assert record(directory, b"one\nlonger\nthree\n", "--size", "5") == 3
    assert record(directory, b"four\nfive\n", "--size", "5") == 0
    assert read(directory).stdout.splitlines()[1].startswith("/lines 4 16 1 ")


def test_a_directory_without_records_is_said_to_be_so(work: Path) -> None:
    read_nothing = read(work)
    assert read_nothing.returncode == 1
    assert "no finished segment with records" in read_nothing.stderr
