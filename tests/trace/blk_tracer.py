# SPDX-License-Identifier: MIT OR Apache-2.0
"""blktrace on this machine, where the kernel may be locked down and refuse blktrace's own files.

The kernel's half of blktrace is the same; its records come through ftrace's `blk` tracer instead
of relay files, in the same bytes, so blkparse and btt read them. The tracer belongs to the kernel's
top tracing instance: what this changes there is restored.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from steady_lab.errors import LabError

TRACEFS = Path("/sys/kernel/tracing")
SETTINGS = {
    "tracing_on": "0",
    "trace_clock": "mono",
    "buffer_size_kb": "16384",
    "current_tracer": "blk",
    "options/bin": "1",
    "options/context-info": "0",
}
LOOK_EVERY_S = 0.05
# linux/blktrace_api.h: magic with version 7; CPU and length of the rest.
RECORD = struct.Struct("<I36xI2xH")
MAGIC = 0x65617407
CPUS_MAX = 8192
READ_BYTES = 1 << 20


def why_not() -> str | None:
    """Return what keeps this machine from tracing with it; None if nothing does."""
    if os.geteuid() != 0:
        return "loop devices and tracing need root"
    if not (TRACEFS / "available_tracers").exists():
        # As trace-cmd and perf do; not every system mounts it at its start.
        subprocess.run(
            ["mount", "-t", "tracefs", "none", TRACEFS], capture_output=True, check=False
        )
    try:
        tracers = (TRACEFS / "available_tracers").read_text().split()
        tracer, events = (
            (TRACEFS / name).read_text().strip() for name in ("current_tracer", "set_event")
        )
    except OSError as error:
        return f"{TRACEFS}: {error.strerror}"
    if "blk" not in tracers:
        return "the kernel has no blk tracer: it needs CONFIG_BLK_DEV_IO_TRACE"
    if tracer != "nop" or events:
        return f"somebody uses the top tracing instance: {tracer} {events}"
    return None


@contextlib.contextmanager
def top_instance() -> Iterator[None]:
    """Keep other tests away from the kernel's top tracing instance, those of other clones too."""
    folder = os.open(TRACEFS, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextlib.contextmanager
def blk_tracer(disk: str, folder: Path) -> Iterator[None]:
    """Trace a disk (a kernel name) as `blktrace -o card` in a folder; raises LabError on a loss."""
    target = folder / "card.records"
    switch = Path("/sys/block") / disk / "trace" / "enable"
    with contextlib.ExitStack() as stack:
        for name, value in SETTINGS.items():
            stack.callback((TRACEFS / name).write_text, _now(name))
            (TRACEFS / name).write_text(value)
        stack.callback(switch.write_text, "0")
        switch.write_text("1")
        (TRACEFS / "tracing_on").write_text("1")
        with _reader(target):
            yield
            (TRACEFS / "tracing_on").write_text("0")
        lost = _overrun()
    if lost:
        raise LabError(f"the blk tracer lost {lost} records")
    found = _by_cpu(target.read_bytes())
    # blkparse takes the files of CPU 0 and on, up to the first that is not there.
    for cpu in range(max(found, default=-1) + 1):
        (folder / f"card.blktrace.{cpu}").write_bytes(found.get(cpu, b""))


def _by_cpu(records: bytes) -> dict[int, bytearray]:
    """Sort records into files as blktrace has them: struct blk_io_trace, then pdu_len bytes."""
    found: dict[int, bytearray] = {}
    at = 0
    while at < len(records):
        magic, cpu, pdu_bytes = RECORD.unpack_from(records, at)
        if magic != MAGIC or cpu >= CPUS_MAX:
            raise LabError(f"no record of the blk tracer at byte {at}: {magic:#x}, CPU {cpu}")
        end = at + RECORD.size + pdu_bytes
        found.setdefault(cpu, bytearray()).extend(records[at:end])
        at = end
    return found


def _now(name: str) -> str:
    text = (TRACEFS / name).read_text().strip()
    if name == "trace_clock":
        return text[text.index("[") + 1 : text.index("]")]
    return text.split()[0]


def _overrun() -> int:
    lines = [
        line
        for stats in TRACEFS.glob("per_cpu/cpu*/stats")
        for line in stats.read_text().splitlines()
    ]
    return sum(int(line.split()[-1]) for line in lines if line.startswith(("overrun", "dropped")))


@contextlib.contextmanager
def _reader(target: Path) -> Iterator[None]:
    """Move the trace to the file, until no more comes after the end of the block."""
    over = threading.Event()
    pipe = os.open(TRACEFS / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)

    def move() -> None:
        with target.open("wb") as file:
            while True:
                last = over.is_set()
                # Not poll(): for one who waits, the kernel interrupts a CPU between two probes.
                time.sleep(LOOK_EVERY_S)
                try:
                    while data := os.read(pipe, READ_BYTES):
                        file.write(data)
                except BlockingIOError:
                    pass
                if last:
                    return

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(pipe)
