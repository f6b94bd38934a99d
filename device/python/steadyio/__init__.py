# SPDX-License-Identifier: MIT OR Apache-2.0
"""Record without blocking, and read what was recorded.

    import steadyio

    topic = steadyio.Topic("/imu", record_bytes_max=256, period_s=0.01)
    with steadyio.Recorder("recording", [topic]) as recorder:
        imu = recorder.topic("/imu")
        imu.append(b"...")

    for message in steadyio.read("recording"):
        print(message.topic, message.log_time_ns, message.data)

append() copies a record into memory and returns; a thread without Python writes it. It never waits
for the disk, but it takes as long as Python does: for a loop with a deadline use the C library.
Manual: docs/reference/python.md.
"""

from ._native import Channel, Message, Reading, Recorder, __version__, read
from .declared import Task
from .errors import (
    Error,
    FailedError,
    FlushTimeoutError,
    FullError,
    InvalidError,
    LostError,
    MissingWarning,
    StateError,
    TooLongError,
)
from .types import (
    Account,
    Amount,
    Missing,
    RecordedAccount,
    Recording,
    Schema,
    Stats,
    Topic,
)

__all__ = [
    "Account",
    "Amount",
    "Channel",
    "Error",
    "FailedError",
    "FlushTimeoutError",
    "FullError",
    "InvalidError",
    "LostError",
    "Message",
    "Missing",
    "MissingWarning",
    "Reading",
    "RecordedAccount",
    "Recorder",
    "Recording",
    "Schema",
    "StateError",
    "Stats",
    "Task",
    "TooLongError",
    "Topic",
    "__version__",
    "read",
]
