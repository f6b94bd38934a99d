# SPDX-License-Identifier: MIT OR Apache-2.0
"""steady-live and `steady record --live`, seen by a viewer that speaks Foxglove's protocol."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from steady_lab.paths import BUILD
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol
from wheel_environment import ENVIRONMENT, RING_BYTES, install, options

pytestmark = pytest.mark.waits_for_cargo

STEADY = BUILD / "bin" / "steady"
LONG_S = 60.0
PROTOCOL = Subprotocol("foxglove.sdk.v1")
# More than the SDK lets wait for one viewer.
BURST = 5_000
MESSAGE_DATA = struct.Struct("<BIQ")


@pytest.fixture(scope="session")
def steadyio(testrun_uid: str) -> ModuleType:
    """The installed package, in this process."""
    sys.path.insert(0, str(install(testrun_uid)))
    return importlib.import_module("steadyio")


def environment(*, sdk: bool = True) -> dict[str, str]:
    """That of a user who has installed the package with its extra, or without."""
    found = importlib.util.find_spec("foxglove")
    assert found is not None and found.origin is not None
    path = f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}"
    packages = str(Path(found.origin).parent.parent) if sdk else ""
    return {**os.environ, "PATH": path, "PYTHONPATH": packages}


@contextmanager
def start(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program with that environment, with pipes. A test that fails waits no longer for it."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


@contextmanager
def live(folder: Path) -> Iterator[str]:
    """Run steady-live; its address. At the end it exits because its input has ended."""
    with start("steady-live", folder, "--listen", "127.0.0.1:0", "--until-eof") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        _, said = process.communicate(timeout=LONG_S)
        # The SDK says so of a subscription that comes too early.
        faults = [line for line in said.splitlines() if "unknown channel" not in line]
        assert (process.returncode, faults) == (0, [])


class Viewer:
    """A client with its channels by topic."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.channels: dict[str, Any] = {}
        self.subscribed: list[dict[str, int]] = []

    def channel(self, topic: str) -> Any:
        """Wait until a channel is advertised."""
        while topic not in self.channels:
            self.take(self.socket.recv(timeout=LONG_S))
        return self.channels[topic]

    def take(self, text: str | bytes) -> None:
        """Note what the server advertises.

        The SDK advertises a channel just before it takes subscriptions to it: try again.
        """
        assert isinstance(text, str), "a message of a topic that nobody has subscribed to"
        said = json.loads(text)
        self.channels.update({one["topic"]: one for one in said.get("channels", [])})
        if said.get("message", "").startswith("Unknown channel ID"):
            time.sleep(0.05)
            self.ask()

    def ask(self) -> None:
        """Send the subscriptions."""
        self.socket.send(json.dumps({"op": "subscribe", "subscriptions": self.subscribed}))

    def subscribe(self, topic: str, number: int) -> None:
        """Ask for the messages of a topic."""
        self.subscribed = [{"id": number, "channelId": self.channel(topic)["id"]}]
        self.ask()

    def message(self, number: int) -> tuple[int, bytes]:
        """Log time and contents of the next message, which must be of this subscription."""
        while isinstance(received := self.socket.recv(timeout=LONG_S), str):
            self.take(received)
        opcode, subscription, time_ns = MESSAGE_DATA.unpack_from(received)
        assert (opcode, subscription) == (1, number)
        return time_ns, received[MESSAGE_DATA.size :]

    def has_come(self) -> bool:
        """Wait a moment for any message."""
        try:
            received = self.socket.recv(timeout=0.5)
        except TimeoutError:
            return False
        if isinstance(received, str):
            self.take(received)
        return isinstance(received, bytes)


@contextmanager
def viewer(address: str, **more: Any) -> Iterator[Viewer]:
    """Connect, as Foxglove does."""
    with connect(address, subprotocols=[PROTOCOL], max_size=None, **more) as socket:
        assert socket.subprotocol == PROTOCOL
        yield Viewer(socket)


def wait_for_message(watching: Viewer, channel: Any, number: int, log_time_ns: int) -> None:
    """Append until the viewer gets it: its subscription takes a moment."""
    deadline = time.monotonic() + LONG_S
    channel.append(b"first", log_time_ns=log_time_ns)
    while not watching.has_come():
        assert time.monotonic() < deadline, "no message has come"
        channel.append(b"first", log_time_ns=log_time_ns)
    # Whatever was appended before it has come, too.
    channel.append(b"second", log_time_ns=log_time_ns)
    while watching.message(number)[1] != b"second":
        pass


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_viewer_gets_the_topic_that_it_asks_for_also_across_segments(
    steadyio: ModuleType, work: Path, compression: str
) -> None:
    schema = steadyio.Schema("Angle", "ros2msg", b"float64 angle")
    topics = [
        steadyio.Topic("/a", 9_000, ring_bytes=RING_BYTES, encoding="cdr", schema=schema),
        # Its ring holds all of it, as nobody waits until it is durable.
        steadyio.Topic("/b", 9_000, ring_bytes=2 << 20, encoding="text"),
    ]
    with (
        live(work / "recording") as address,
        steadyio.Recorder(work / "recording", topics, **options(compression=compression)) as pool,
    ):
        a, b = pool.topic("/a"), pool.topic("/b")
        a.append(b"0")
        with viewer(address) as watching:
            watching.subscribe("/a", 7)
            described = watching.channel("/a")
            assert (described["encoding"], described["schemaName"]) == ("cdr", "Angle")
            assert (described["schemaEncoding"], described["schema"]) == (
                "ros2msg",
                "float64 angle",
            )
            plain = watching.channel("/b")
            assert (plain["encoding"], plain.get("schema", "")) == ("text", "")
            wait_for_message(watching, a, 7, 5)
            segments = pool.stats().rotations
            for begin in range(0, 200, 5):
                records = [os.urandom(8_000) for _ in range(5)]
                for number, data in enumerate(records, begin):
                    assert b.append(data, log_time_ns=number)
                    assert a.append(data, log_time_ns=1_000 + number)
                for number, data in enumerate(records, begin):
                    assert watching.message(7) == (1_000 + number, data)
            assert pool.stats().rotations > segments + 2
        assert pool.ledger()["/a"].lost.records == 0


def test_a_viewer_that_reads_gets_all_of_a_burst(steadyio: ModuleType, work: Path) -> None:
    topic = steadyio.Topic("/a", 100, ring_bytes=1 << 20)
    with (
        live(work / "recording") as address,
        steadyio.Recorder(work / "recording", [topic], **options(unit_bytes=128 << 10)) as pool,
    ):
        a = pool.topic("/a")
        a.append(b"0")
        with viewer(address) as watching:
            watching.subscribe("/a", 3)
            wait_for_message(watching, a, 3, 5)
            for number in range(BURST):
                assert a.append(b"%d" % number, log_time_ns=number)
            found = [watching.message(3) for _ in range(BURST)]
            assert found == [(number, b"%d" % number) for number in range(BURST)]


def test_a_viewer_sees_late_topics_and_what_a_latched_one_said_last(
    steadyio: ModuleType, work: Path
) -> None:
    latched = steadyio.Topic("/map", 100, ring_bytes=RING_BYTES, latched=True)
    with (
        live(work / "recording") as address,
        steadyio.Recorder(work / "recording", [latched], **options()) as pool,
    ):
        pool.topic("/map").append(b"map", log_time_ns=4)
        pool.flush()
        with viewer(address) as watching:
            watching.subscribe("/map", 1)
            assert watching.message(1) == (4, b"map")
            late = steadyio.Topic("/late", 100, ring_bytes=RING_BYTES, encoding="json")
            pool.declare(late).append(b"{}")
            assert watching.channel("/late")["encoding"] == "json"
        with viewer(address) as another:
            another.subscribe("/map", 2)
            assert another.message(2) == (4, b"map")


def test_without_the_sdk_it_says_how_to_install_it(testrun_uid: str, work: Path) -> None:
    install(testrun_uid)
    folder = work / "none"
    command = (STEADY, "record", "--live", "127.0.0.1:0", "--dir", folder)
    without = environment(sdk=False)
    done = subprocess.run(command, env=without, capture_output=True, text=True, timeout=LONG_S)
    assert done.returncode == 2
    assert "install it with pip install 'steadyio[live]'" in done.stderr
    assert not folder.exists()


def test_an_address_in_use_ends_the_command(testrun_uid: str, work: Path) -> None:
    install(testrun_uid)
    with live(work) as address:
        command = ("steady-live", work, "--listen", address.removeprefix("ws://"))
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 1
        assert "Address already in use" in done.stderr and "choose another" in done.stderr


def record(work: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run `steady record --live` with a live view."""
    small = ("--no-lock", "--json", "--segments", "3", "--segment-size", "16MiB")
    command = (STEADY, "record", "--live", "127.0.0.1:0", "--dir", work / "recording")
    return start(*command, *small, *arguments)


def line_with(process: subprocess.Popen[str], part: str) -> str:
    """The next line on standard error that has this in it."""
    assert process.stderr is not None
    return next(line for line in process.stderr if part in line)


def address_of(process: subprocess.Popen[str]) -> str:
    """Where a recorder's live view listens."""
    return line_with(process, "live view: ").split()[-1]


def viewer_of(process: subprocess.Popen[str]) -> int:
    """The process of a recorder's live view."""
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    (found,) = (int(word) for path in children for word in path.read_text().split())
    return found


def accounts(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Wait for the end, which must be without a fault: the total, and what else it said."""
    out, said = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, said
    return json.loads(out)["ledger"]["total"], said


def test_a_viewer_that_never_reads_costs_the_recorder_nothing(testrun_uid: str, work: Path) -> None:
    install(testrun_uid)
    with (
        record(work, "--size", "8KiB", "--period", "1ms", "--ring", "32MiB") as process,
        viewer(address_of(process), max_queue=1, close_timeout=0.1) as watching,
    ):
        watching.subscribe("/periodic", 1)
        # Else a subscription that came too early would leave nothing to be slow for.
        while not watching.has_come():
            pass
        # The SDK's queue and those of the connection are full.
        line_with(process, "a viewer is too slow")
        child = viewer_of(process)
        process.send_signal(signal.SIGINT)
        total, said = accounts(process)
    assert total["durable"] == total["received"] and total["received"]["records"] > 256
    assert "has ended" not in said
    assert not Path(f"/proc/{child}").exists()


def test_recording_goes_on_after_kill_9_of_the_view(testrun_uid: str, work: Path) -> None:
    install(testrun_uid)
    lines = ["--input", "-", "--encoding", "json", "--topic", "/pose"]
    with record(work, *lines) as process:
        assert process.stdin is not None
        address, deadline = address_of(process), time.monotonic() + LONG_S
        process.stdin.write('{"x": 1}\n')
        process.stdin.flush()
        with viewer(address) as watching:
            watching.subscribe("/pose", 1)
            assert watching.channel("/pose")["schemaEncoding"] == "jsonschema"
            os.kill(viewer_of(process), signal.SIGKILL)
        told = line_with(process, "live view has ended")
        assert told == "steady: the live view has ended (signal: 9 (SIGKILL)); recording goes on\n"
        process.stdin.write('{"x": 2}\n')
        total, said = accounts(process)
    assert time.monotonic() < deadline and said == ""
    assert (total["durable"]["records"], total["received"]["records"]) == (2, 2)


def test_a_viewer_sees_the_last_message_and_then_the_end(testrun_uid: str, work: Path) -> None:
    install(testrun_uid)
    with record(work, "--input", "-", "--loss-window", "1min") as process:
        assert process.stdin is not None
        with viewer(address_of(process)) as watching:
            # More than a block; what does not fill another would be written in half a minute.
            lines = ("x" * 8_000 + "\n") * 200
            process.stdin.write(lines)
            process.stdin.flush()
            watching.subscribe("/lines", 1)
            while not watching.has_come():
                process.stdin.write(lines)
                process.stdin.flush()
            process.stdin.write("last\n")
            process.stdin.close()
            while watching.message(1)[1] != b"last":
                pass
            with pytest.raises(ConnectionClosedOK):
                watching.socket.recv(timeout=LONG_S)
        assert process.wait(timeout=LONG_S) == 0
