# SPDX-License-Identifier: MIT OR Apache-2.0
"""The recorder and its reader from Python, as pip installs them: a wheel, with nothing else."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from steady_lab.paths import BUILD, PROJECT
from wheel_environment import ENVIRONMENT, RING_BYTES, install, options

pytestmark = pytest.mark.waits_for_cargo

RECORDS = 100
FLUSHED = 200


@pytest.fixture(scope="session")
def site_packages(testrun_uid: str) -> Path:
    """Where the package is; built once for all workers."""
    return install(testrun_uid)


@pytest.fixture(scope="session")
def python(site_packages: Path) -> Path:
    """The interpreter of that environment."""
    return ENVIRONMENT / "bin" / "python"


@pytest.fixture(scope="session")
def steadyio(site_packages: Path) -> ModuleType:
    """The installed package, in this process: with the libraries of the lab next to it."""
    sys.path.insert(0, str(site_packages))
    return importlib.import_module("steadyio")


@pytest.fixture
def recorder(steadyio: ModuleType, work: Path) -> Iterator[Any]:
    """One topic, /a."""
    topic = steadyio.Topic("/a", 1_000, ring_bytes=RING_BYTES)
    with steadyio.Recorder(work, [topic], **options()) as recorder:
        yield recorder


def steady(*arguments: str) -> str:
    """What the command prints."""
    command = [str(BUILD / "bin" / "steady"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def fill(channel: Any, record: bytes) -> int:
    """Appends faster than the writer thread looks, until a record is lost; how many were taken."""
    taken = 0
    while channel.append(record):
        taken += 1
    return taken


def test_the_example_runs_with_nothing_else_installed(python: Path, work: Path) -> None:
    example = PROJECT / "docs" / "examples" / "record_in_python.py"
    done = subprocess.run([python, example, work], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["/events: received 1, lost 0", "/joint: received 1000, lost 0"]
    assert lines[2].startswith("{'/joint': 1000, '/events': 1} Missing(blocks=0,")


def test_the_types_are_those_of_the_module(site_packages: Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "steadyio"]
    environment = {**os.environ, "PYTHONPATH": str(site_packages)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout


def test_what_was_appended_is_read(steadyio: ModuleType, work: Path) -> None:
    schema = steadyio.Schema("Angle", "ros2msg", b"float64 angle")
    topic = steadyio.Topic(
        "/a", 64, period_s=0.01, encoding="cdr", schema=schema, metadata={"key": "value"}
    )
    records = [b"bytes", bytearray(b"array"), memoryview(b"a view")[2:], np.arange(8.0), b""]
    with steadyio.Recorder(str(work), [topic], profile="ros2", **options()) as recorder:
        channel = recorder.topic("/a")
        for at, record in enumerate(records):
            assert channel.append(record, log_time_ns=1_000 + at, publish_time_ns=at)
        before_ns = time.time_ns()
        assert channel.append(b"now")
    messages = list(steadyio.read(work))
    assert [message.data for message in messages] == [*map(bytes, records), b"now"]
    assert [message.sequence for message in messages] == [1, 2, 3, 4, 5, 6]
    first, now = messages[0], messages[-1]
    assert (first.topic, first.encoding, first.schema) == ("/a", "cdr", schema)
    assert (first.log_time_ns, first.publish_time_ns) == (1_000, 0)
    assert first.metadata == {"key": "value"}
    assert before_ns <= now.log_time_ns == now.publish_time_ns <= time.time_ns()
    chosen = steadyio.read([work], ["/*"], from_ns=1_001, to_ns=1_003)
    assert [message.log_time_ns for message in chosen] == [1_001, 1_002]
    assert chosen.topics == ["/a"]
    assert chosen.times_ns == (1_000, now.log_time_ns)
    assert [recording.recording_id for recording in chosen.recordings] == [first.recording_id]


def test_compressed_records_are_read(steadyio: ModuleType, work: Path) -> None:
    records = [b"%05d of the same words" % number * 40 for number in range(60)]
    device_bytes = {}
    for compression in ("none", "lz4", "zstd"):
        folder = work / compression
        topic = steadyio.Topic("/a", 1_000, ring_bytes=RING_BYTES)
        with steadyio.Recorder(folder, [topic], **options(compression=compression)) as recorder:
            assert all(recorder.topic("/a").append(record) for record in records)
            recorder.flush()
            device_bytes[compression] = recorder.stats().device_bytes
        assert [message.data for message in steadyio.read(folder)] == records
    assert device_bytes["zstd"] < device_bytes["none"] / 2 > device_bytes["lz4"], device_bytes


def test_a_full_ring_loses_records_counts_them_and_makes_the_end_fail(
    steadyio: ModuleType, work: Path
) -> None:
    topic = steadyio.Topic("/a", 1_000, ring_bytes=8 << 10)
    with (
        pytest.raises(steadyio.LostError, match=r"^1 records were lost; /a: 1 of \d+"),
        steadyio.Recorder(work, [topic], **options()) as recorder,
    ):
        taken = fill(recorder.topic("/a"), bytes(1_000))
        with pytest.raises(steadyio.LostError):
            recorder.flush()
        account = recorder.ledger()["/a"]
    assert account.received.records == taken + 1
    assert (account.durable.records, account.lost) == (taken, (1, 1_000))
    assert account.first_lost_ns == account.last_lost_ns
    reading = steadyio.read(work)
    assert sum(1 for _ in reading) == taken
    assert reading.recordings[0].topics["/a"].lost == 1


def test_a_record_that_is_too_long_is_refused_and_counted(recorder: Any) -> None:
    steadyio = sys.modules["steadyio"]
    channel = recorder.topic("/a")
    with pytest.raises(steadyio.TooLongError, match=r"1001 bytes .* record_bytes_max = 1000"):
        channel.append(bytes(1_001))
    assert channel.account().lost.bytes == 1_001
    with pytest.raises(steadyio.LostError):
        recorder.finish()


def test_errors_say_what_was_wrong(steadyio: ModuleType, recorder: Any, work: Path) -> None:
    topic, other = steadyio.Topic("/b", 100, ring_bytes=RING_BYTES), work.with_suffix(".other")
    channel = recorder.topic("/a")

    def start(**more: Any) -> Any:
        return steadyio.Recorder(other, [topic], **options(**more))

    invalid, failed, state = steadyio.InvalidError, steadyio.FailedError, steadyio.StateError
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: start(when_full="x"), invalid, 'when_full = "x": must be one of recycle, stop'),
        (lambda: start(compression="x"), invalid, "must be one of none, lz4, zstd"),
        (lambda: start(keep_s=1.0), invalid, "keep_s = 2 of them: give at most one"),
        (lambda: start(segments=1), invalid, "number of segments = 1: must be 2 to 10000"),
        (lambda: start(loss_window_s=0.0), invalid, "loss_window_s = 0: must be a number of sec"),
        (lambda: start(profile="a\0"), invalid, 'profile = "a\\0": must not contain a 0 byte'),
        (lambda: steadyio.Recorder(work, [topic], **options()), failed, "in use by a recorder"),
        (lambda: steadyio.Recorder(work, ["/b"]), TypeError, "a steadyio.Topic, not str"),
        (lambda: recorder.topic("/b"), invalid, 'name = "/b": not declared; must be one of /a'),
        (lambda: channel.append("text"), TypeError, "bytes-like"),
        (lambda: channel.append(memoryview(b"1234")[::2]), BufferError, "contiguous"),
        (lambda: channel.append(b"", log_time_ns=-1), OverflowError, "negative"),
        (lambda: steadyio.read(other), failed, "No such file"),
        (lambda: steadyio.read(work, from_ns=2, to_ns=2), invalid, "from_ns = 2: must be less"),
    ]
    for call, error, text in cases:
        with pytest.raises(error) as raised:
            call()
        assert text in str(raised.value)
    assert not other.exists()
    channel.append(b"a record")
    recorder.finish()
    recorder.finish()
    with pytest.raises(state, match="append after finish"):
        channel.append(b"late")
    with pytest.raises(invalid, match='topics = "/b": no such topic; must be one of /a'):
        steadyio.read(work, ["/b"])


def test_topics_are_declared_while_recording(steadyio: ModuleType, work: Path) -> None:
    def topic(name: str) -> Any:
        return steadyio.Topic(name, 100, ring_bytes=RING_BYTES)

    with steadyio.Recorder(work, [topic("/a")], late_topics=1, **options()) as recorder:
        assert recorder.topic("/a").append(b"first")
        assert recorder.declare(topic("/b")).append(b"second")
        assert recorder.topic("/b").topic == "/b"
        with pytest.raises(steadyio.InvalidError, match="channels"):
            recorder.declare(topic("/c"))
        assert sorted(recorder.ledger()) == ["/a", "/b"]
    assert [(m.topic, m.data) for m in steadyio.read(work)] == [("/a", b"first"), ("/b", b"second")]


def test_a_latched_record_is_read_after_the_ring_has_wrapped(
    steadyio: ModuleType, work: Path
) -> None:
    topics = [
        steadyio.Topic("/map", 100, ring_bytes=RING_BYTES, latched=True),
        steadyio.Topic("/a", 1_000, ring_bytes=RING_BYTES),
    ]
    with steadyio.Recorder(work, topics, **options(segments=2)) as recorder:
        recorder.topic("/map").append(b"map", log_time_ns=1)
        for time_ns in range(2, 3_000):
            assert recorder.topic("/a").append(bytes(1_000), log_time_ns=time_ns)
            if time_ns % 20 == 0:
                recorder.flush()
    reading = steadyio.read(work)
    found = [(message.topic, message.data, message.sequence) for message in reading]
    assert [message for message in found if message[0] == "/map"] == [("/map", b"map", 1)]
    assert reading.times_ns[0] > 2
    assert not reading.missing.messages


def test_a_reader_sees_what_a_running_recorder_made_durable(
    steadyio: ModuleType, recorder: Any, work: Path
) -> None:
    channel = recorder.topic("/a")
    for number in range(RECORDS):
        channel.append(b"%d" % number)
    recorder.flush()
    channel.append(b"in the ring")
    read = [int(message.data) for message in steadyio.read(work) if message.data[:2] != b"in"]
    assert read == list(range(RECORDS))


def test_after_kill_9_everything_durable_is_read(
    steadyio: ModuleType, python: Path, work: Path
) -> None:
    program = f"""
import steadyio, time
topic = steadyio.Topic("/a", 100, ring_bytes={RING_BYTES})
recorder = steadyio.Recorder({str(work)!r}, [topic], **{options()})
for number in range({FLUSHED}):
    recorder.topic("/a").append(b"%d" % number)
recorder.flush()
print("durable", flush=True)
while True:
    recorder.topic("/a").append(b"-1")
    time.sleep(0.001)
"""
    with subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "durable\n"
        process.kill()
    reading = steadyio.read(work)
    numbers = [int(message.data) for message in reading]
    assert numbers[:FLUSHED] == list(range(FLUSHED))
    assert set(numbers[FLUSHED:]) <= {-1}
    assert (reading.missing.durable_blocks, reading.unreadable) == (0, [])


def test_damage_is_counted_and_a_warning(steadyio: ModuleType, recorder: Any, work: Path) -> None:
    channel = recorder.topic("/a")
    for number in range(RECORDS):
        assert channel.append(bytes(1_000))
        if number % 25 == 0:
            recorder.flush()
    recorder.finish()
    segment = next(path for path in work.glob("*.mcap"))
    with segment.open("r+b") as file:
        file.seek(40_000)
        file.write(b"damage")
    reading = steadyio.read(work)
    with pytest.warns(steadyio.MissingWarning, match=r"damaged: 1 blocks, \d+ bytes, are missing"):
        found = sum(1 for _ in reading)
    assert 0 < found < RECORDS
    assert reading.missing.durable_blocks == 1
    assert reading.recordings[0].topics["/a"].received == RECORDS


def test_a_child_of_fork_cannot_append_and_leaves_the_recording_alone(
    recorder: Any, python: Path, work: Path
) -> None:
    program = f"""
import gc, os, steadyio
topic = steadyio.Topic("/a", 100, ring_bytes={RING_BYTES})
with steadyio.Recorder({str(work / "forked")!r}, [topic], **{options()}) as recorder:
    channel = recorder.topic("/a")
    if os.fork() == 0:
        for call in (lambda: channel.append(b""), recorder.flush, recorder.finish):
            try:
                call()
                print("not refused")
            except steadyio.StateError as error:
                print(error)
        del channel, recorder, call
        gc.collect()
        os._exit(0)
    os.wait()
    channel.append(b"parent")
print([message.data for message in steadyio.read({str(work / "forked")!r})])
"""
    done = subprocess.run([python, "-uc", program], capture_output=True, text=True, timeout=60)
    refused = "this process was forked from the one that records: only that one can"
    assert done.stdout.splitlines() == [refused] * 3 + ["[b'parent']"], done.stderr


def test_an_incident_is_kept_and_the_socket_tells(steadyio: ModuleType, work: Path) -> None:
    topic = steadyio.Topic("/a", 100, ring_bytes=RING_BYTES)
    # The name of a socket has 107 bytes at most.
    with (
        tempfile.TemporaryDirectory() as folder,
        steadyio.Recorder(work, [topic], **options(control_socket=f"{folder}/socket")) as recorder,
    ):
        recorder.topic("/a").append(b"near miss")
        assert 0 <= recorder.keep_incident("near-miss", 30.0) <= 30
        with pytest.raises(steadyio.StateError, match="near-miss"):
            recorder.keep_incident("near-miss", 30.0)
        with pytest.raises(steadyio.InvalidError):
            recorder.keep_incident("a/b", 30.0)
        assert "\n/a " in steady("status", "--control", f"{folder}/socket")
    assert "\nnear-miss " in steady("incidents", "list", str(work))


def test_other_threads_run_while_one_waits(recorder: Any) -> None:
    channel, appended, stop = recorder.topic("/a"), [0], threading.Event()

    def append() -> None:
        while not stop.is_set():
            appended[0] += channel.append(b"x")
            time.sleep(0.001)

    channel.append(b"x")
    thread = threading.Thread(target=append)
    thread.start()
    before = appended[0]
    recorder.flush()
    during = appended[0] - before
    stop.set()
    thread.join()
    assert during > 0


class PressedError(Exception):
    """Raised by a signal's handler."""


def press(*_: Any) -> None:
    raise PressedError


def test_a_signal_ends_a_flush_that_waits(steadyio: ModuleType, work: Path) -> None:
    topic = steadyio.Topic("/a", 100, ring_bytes=RING_BYTES)
    before = signal.signal(signal.SIGALRM, press)
    with steadyio.Recorder(work, [topic], **options(loss_window_s=3_600.0)) as recorder:
        recorder.topic("/a").append(b"x")
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(PressedError):
            recorder.flush(timeout_s=600.0)
        with pytest.raises(steadyio.FlushTimeoutError):
            recorder.flush(timeout_s=0.01)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_the_making_of_segments(steadyio: ModuleType, work: Path) -> None:
    topic = steadyio.Topic("/a", 100, ring_bytes=RING_BYTES)
    before = signal.signal(signal.SIGALRM, press)
    noted: list[str] = []

    def note(text: str) -> None:
        noted.append(text)
        if len(noted) == 1:
            signal.raise_signal(signal.SIGALRM)
            # Until the thread that waits has seen it.
            time.sleep(0.3)

    with pytest.raises(PressedError):
        steadyio.Recorder(work, [topic], **options(note=note))
    signal.signal(signal.SIGALRM, before)
    assert noted[0].startswith("making segment 1 of 3")
    with steadyio.Recorder(work, [topic], **options()) as recorder:
        assert recorder.topic("/a").append(b"x")


def test_a_recorder_that_is_dropped_finishes(steadyio: ModuleType, work: Path) -> None:
    topic = steadyio.Topic("/a", 100, ring_bytes=RING_BYTES)
    recorder = steadyio.Recorder(work, [topic], **options())
    channel = recorder.topic("/a")
    channel.append(b"x")
    del recorder
    assert channel.append(b"the channel keeps the recorder")
    del channel
    gc.collect()
    assert sum(1 for _ in steadyio.read(work)) == 2


def test_the_wheel_is_for_many_systems_and_describes_itself(site_packages: Path) -> None:
    (information,) = site_packages.glob("steadyio-*.dist-info")
    tags = re.findall(r"^Tag: (.*)$", (information / "WHEEL").read_text(), re.MULTILINE)
    assert tags and all(re.match(r"cp39-abi3-manylinux_2_\d+_", tag) for tag in tags)
    assert "Records messages on storage" in (information / "METADATA").read_text()


def test_the_example_of_the_readme_runs(python: Path, work: Path) -> None:
    text = (PROJECT / "device" / "python" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    done = subprocess.run(
        [python, "-c", code], cwd=work, capture_output=True, text=True, check=True
    )
    assert done.stdout == "/joint b'position 1'\n"


def test_the_guide_records_ros_messages_without_ros(site_packages: Path, work: Path) -> None:
    guide = (PROJECT / "docs" / "guides" / "rosbag2.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    # The interpreter of the tests has rosbags.
    environment = {**os.environ, "PYTHONPATH": str(site_packages)}
    subprocess.run([sys.executable, "-c", code], cwd=work, env=environment, check=True)
    steady = BUILD / "bin" / "steady"
    subprocess.run([steady, "export", "--ros2", "bag", "recording"], cwd=work, check=True)
    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(work / "bag") as reader:
        poses: list[Any] = [
            store.deserialize_cdr(data, connection.msgtype)
            for connection, _, data in reader.messages()
        ]
    found = [(pose.header.stamp.sec, pose.header.frame_id, pose.point.x) for pose in poses]
    assert found == [(step, "map", step / 10) for step in range(100)]
