# SPDX-License-Identifier: MIT OR Apache-2.0
"""Show a recording to Foxglove while it is written: the command steady-live.

It reads the segments behind the recorder, and only if somebody has subscribed to a topic. The
recorder never waits for it. What a slow viewer cannot take is dropped, in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import queue
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ._native import Following, Message
from .errors import FailedError
from .types import Schema

INSTALL = "install it with pip install 'steadyio[live]' (Python 3.10 or later)"
LISTEN = "127.0.0.1:8765"
POLL_S = 0.05
# Messages that may wait for one viewer. The SDK drops older ones, and cannot count their bytes.
BACKLOG = 512
# A block may have more messages than that. A viewer that reads gets all of them, with a pause.
BURST = 128
PAUSE_S = 0.005
# The SDK drops what waits at the end.
FLUSH_S = 0.2
GOODBYE_S = 1.0
LATCHED = "steadyio.latched"

Described = tuple[str, str, "Schema | None", dict[str, str]]


def say(text: str) -> None:
    """Print a line for the user, unless nobody reads it."""
    with contextlib.suppress(OSError):
        os.write(2, f"steady-live: {text}\n".encode())


class Listener:
    """Notes who subscribes to what. The SDK calls it in threads of its own."""

    def __init__(self) -> None:
        self.subscribed: queue.SimpleQueue[str] = queue.SimpleQueue()

    def on_subscribe(self, _client: Any, channel: Any) -> None:
        """Called once messages of this channel go to the client."""
        self.subscribed.put(channel.topic)

    def on_unsubscribe(self, _client: Any, _channel: Any) -> None:
        """The channel itself knows."""


class Log(logging.Handler):
    """Passes on messages of the SDK."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print warnings, and every half minute whether a client does not take its messages."""
        if record.levelno >= logging.WARNING:
            say(record.getMessage())
        elif record.name.endswith("send_lossy"):
            text = record.getMessage()
            say(f"a viewer is too slow, so its oldest messages are dropped: {text}")


class View:
    """The channels of a recording, and the place up to which it was shown."""

    def __init__(self, sdk: Any, directory: Path, listener: Listener) -> None:
        self.sdk = sdk
        self.following = Following(directory)
        self.listener = listener
        self.described: list[Described] = []
        self.channels: dict[str, Any] = {}
        self.skipped = 0
        self.failed = ""

    def turn(self) -> bool:
        """Show what has come; whether there was anything."""
        try:
            messages, changed = self.following.poll(self.wanted())
            self.show(messages)
            if changed:
                self.advertise()
            self.show_latched()
        except FailedError as error:
            if str(error) != self.failed:
                self.failed = str(error)
                say(f"{error}; trying again")
            return False
        self.tell_skipped()
        return changed or bool(messages)

    def wanted(self) -> set[str]:
        """The topics with a subscriber."""
        return {topic for topic, channel in self.channels.items() if channel.has_sinks()}

    def show(self, messages: list[Message]) -> None:
        """Hand messages to the clients that have subscribed to them."""
        for number, message in enumerate(messages, 1):
            if number % BURST == 0:
                time.sleep(PAUSE_S)
            self.channels[message.topic].log(message.data, log_time=message.log_time_ns)

    def advertise(self) -> None:
        """Follow the recording's channels."""
        described = self.following.channels
        for one in self.described:
            if one not in described:
                self.channels.pop(one[0]).close()
        for topic, encoding, schema, metadata in described:
            if topic not in self.channels:
                self.channels[topic] = self.sdk.Channel(
                    topic,
                    message_encoding=encoding,
                    schema=self.sdk_schema(schema),
                    metadata=metadata,
                )
        self.described = described

    def sdk_schema(self, schema: Schema | None) -> Any:
        """None would mean JSON to the SDK."""
        known = schema or Schema("")
        return self.sdk.Schema(name=known.name, encoding=known.encoding, data=known.data)

    def show_latched(self) -> None:
        """Show a new subscriber the message that holds."""
        while not self.listener.subscribed.empty():
            topic = self.listener.subscribed.get()
            if any(one[0] == topic and one[3].get(LATCHED) == "true" for one in self.described):
                last = self.following.last(topic)
                self.show([last] if last else [])

    def tell_skipped(self) -> None:
        """Say that this process was too slow."""
        skipped = self.following.skipped_segments
        if skipped > self.skipped:
            say(f"too slow: {skipped - self.skipped} segments were not shown ({skipped} so far)")
            self.skipped = skipped


class Stop:
    """Whether to end: after a signal, or at the end of the standard input."""

    def __init__(self, until_eof: bool) -> None:
        self.inputs = [0] if until_eof else []
        self.requested = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.request)

    def request(self, *_: object) -> None:
        """Called by a signal."""
        self.requested = True

    def wait(self, seconds: float) -> bool:
        """Wait; whether to end."""
        ready, _, _ = select.select(self.inputs, [], [], seconds)
        if ready and not os.read(0, 4096):
            self.requested = True
        return self.requested


def address(text: str) -> tuple[str, int]:
    """Host and port. Raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: must be HOST:PORT, as {LISTEN}")
    return host.strip("[]"), int(port)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="steady-live", description="Show a recording to Foxglove while it is written."
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the recording")
    parser.add_argument(
        "--listen",
        type=address,
        default=LISTEN,
        metavar="HOST:PORT",
        help=f"address for viewers, who can read all of the recording [default: {LISTEN}]",
    )
    parser.add_argument("--until-eof", action="store_true", help="end when the standard input ends")
    return parser.parse_args()


def be_expendable() -> None:
    """If memory runs out, let the kernel end this process, not the recorder."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def start(sdk: Any, listener: Listener, host: str, port: int) -> Any:
    """The server. Exits if the address cannot be used."""
    logging.getLogger().addHandler(Log())
    logging.getLogger().setLevel(logging.INFO)
    sdk.set_log_level("INFO")
    try:
        return sdk.start_server(
            name="steadyio",
            host=host,
            port=port,
            server_listener=listener,
            message_backlog_size=BACKLOG,
        )
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"steady-live: --listen {host}:{port}: {error} (choose another address)")


def end(server: Any) -> None:
    """Say goodbye to all viewers, and exit: one that reads nothing would hold up the SDK."""
    goodbye = threading.Thread(target=server.stop, daemon=True)
    goodbye.start()
    goodbye.join(GOODBYE_S)
    os._exit(0)


def main() -> None:
    """The command."""
    given = arguments()
    try:
        sdk = importlib.import_module("foxglove")
    except ImportError as error:
        sys.exit(f"steady-live: {error}: {INSTALL}")
    be_expendable()
    stop = Stop(given.until_eof)
    host, port = given.listen
    listener = Listener()
    view = View(sdk, given.dir, listener)
    server = start(sdk, listener, host, port)
    shown = f"[{host}]" if ":" in host else host
    print(f"ws://{shown}:{server.port}", flush=True)
    while not stop.wait(0 if view.turn() else POLL_S):
        pass
    # The recorder has written its last blocks before it ended the input.
    until_s = time.monotonic() + GOODBYE_S
    while view.turn() and time.monotonic() < until_s:
        pass
    time.sleep(FLUSH_S)
    end(server)
