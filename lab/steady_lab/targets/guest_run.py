# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the process that is a guest, follow it, and judge how it ended; the same for every target."""

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from steady_lab.targets.kernel_log import find_exit_status, refuse_trouble
from steady_lab.targets.target import BootError, BootRequest, BootResult, RunError

POLL_INTERVAL_S = 0.02
# In the work folder: the boot's own files.
PRIVATE = ".steady"
INIT, CONSOLE, KERNEL_LOG = "init.sh", "console.log", "kernel.log"
# Which files of the clone a guest has used: lab/host/inputs.c adds to it.
INPUTS = "inputs"


@dataclass(frozen=True)
class GuestProcess:
    """A guest before its start: the text of its init, and the command that runs it.

    `command` is given the work folder. The process has the command's output on descriptor 0, the
    kernel's log on 1 and 2; files, not pipes. `look` is called with its process ID, again and
    again; `last_seen` returns the last observation of a guest that reached its time limit.
    """

    init: str
    command: Callable[[Path], Sequence[str]]
    look: Callable[[int], None] = lambda _: None
    last_seen: Callable[[], str] = str


def run_guest(guest: GuestProcess, request: BootRequest) -> BootResult:
    """Run it until it ends; raises BootError as `Target.boot` does."""
    work = request.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    with _owned(work):
        private = work / PRIVATE
        shutil.rmtree(private, ignore_errors=True)
        private.mkdir()
        (private / INPUTS).touch()
        init = private / INIT
        init.write_text(guest.init)
        init.chmod(0o755)
        start_s = time.monotonic()
        ended = _run(guest, request, work)
        return _judge(guest, request, private, ended, time.monotonic() - start_s)


@contextmanager
def _owned(work: Path) -> Iterator[None]:
    """Lock the work folder for one guest: a second one would overwrite the first one's logs."""
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BootError(f"{work}: another guest is using this work folder") from None
        yield
    finally:
        os.close(descriptor)


def _run(guest: GuestProcess, request: BootRequest, work: Path) -> bool:
    """Returns whether the guest ended within the time limit."""
    private = work / PRIVATE
    with (private / CONSOLE).open("ab") as console, (private / KERNEL_LOG).open("ab") as log:
        process = subprocess.Popen(
            guest.command(work),
            stdin=console,  # To write to.
            stdout=log,
            stderr=log,
            env={"PATH": os.defpath},
        )
        try:
            return _follow(process, private / CONSOLE, guest, request)
        finally:
            process.kill()
            process.wait()


def _follow(
    process: "subprocess.Popen[bytes]", console: Path, guest: GuestProcess, request: BootRequest
) -> bool:
    """Pass the console on as it grows until the guest ends; False if it ran out of time."""
    deadline_s = time.monotonic() + request.timeout_s
    with console.open(encoding="utf-8", errors="replace") as stream:
        while True:
            ended = process.poll() is not None
            text = stream.read()
            if text and request.on_output:
                request.on_output(text)
            if ended:
                return True
            if time.monotonic() > deadline_s:
                return False
            if request.cancelled and request.cancelled.is_set():
                raise BootError("cancelled")
            guest.look(process.pid)
            time.sleep(POLL_INTERVAL_S)


def _judge(
    guest: GuestProcess, request: BootRequest, private: Path, ended: bool, wall_s: float
) -> BootResult:
    output, log = (
        (private / name).read_text(encoding="utf-8", errors="replace")
        for name in (CONSOLE, KERNEL_LOG)
    )
    where = f"kernel log: {private}/{KERNEL_LOG}"
    refuse_trouble(log, where)
    if not ended:
        seen = guest.last_seen()
        raise RunError(
            f"still running after {request.timeout_s:g} s, the wall time limit; a loop that never "
            "waits would stop the guest's clock (docs/reference/steady-lab.md)\n"
            f"{seen and f'last seen: {seen}'}\n"
            f"output so far:\n{_tail(output)}\n{_tail(log)}\n{where}"
        )
    status = find_exit_status(log)
    if status is None:
        raise RunError(f"the guest ended without an exit status\n{output}{_tail(log)}\n{where}")
    return BootResult(status, output, log, wall_s)


def _tail(log: str, lines: int = 25) -> str:
    return "\n".join(log.splitlines()[-lines:])
