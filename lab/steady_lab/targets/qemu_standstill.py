# SPDX-License-Identifier: MIT OR Apache-2.0
"""End a guest that QEMU has stopped running.

Seen twice, on 6.12: in a suspend of all devices every CPU was halted and QEMU had no timer set,
while the kernel waited for one. A kernel that hangs has its watchdogs' timers, and so takes some
CPU.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from steady_lab.targets.target import BootError

STANDSTILL = "QEMU runs nothing any more"
STILL_S_MAX = 60
LOOK_INTERVAL_S = 1
ANSWER_S = 2
# Fields of /proc/PID/stat after the name in parentheses, which may have any characters.
USER_TIME, SYSTEM_TIME = 11, 12


class Standstill:
    """To be polled while QEMU runs. `folder` has its monitor; what that says is left next to it, in
    REPORT, for the next boot empties the folder."""

    REPORT = "standstill.txt"

    def __init__(self, folder: Path, cpus: int, still_s_max: float = STILL_S_MAX) -> None:
        self._folder = folder
        self._cpus = cpus
        self._still_s_max = still_s_max
        self._next_s = 0.0
        self._ticks = -1
        self._since_s = 0.0

    def arguments(self) -> list[str]:
        """QEMU's machine protocol on two FIFOs, whose paths may be longer than a socket's."""
        for path in self._fifos():
            os.mkfifo(path)
        path = self._folder / "monitor"
        return ["-chardev", f"pipe,id=monitor,path={path}", "-mon", "chardev=monitor,mode=control"]

    def look(self, process: int) -> None:
        """Raises BootError if it took no CPU for `still_s_max`."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LOOK_INTERVAL_S
        words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks = int(words[USER_TIME]) + int(words[SYSTEM_TIME])
        if ticks != self._ticks:
            self._ticks, self._since_s = ticks, now_s
        elif now_s - self._since_s > self._still_s_max:
            report = self._folder.parent / self.REPORT
            report.write_text(self._answer(), encoding="utf-8")
            raise BootError(
                f"{STANDSTILL}: it took no CPU for {self._still_s_max} s, but had not ended; "
                f"registers and timers of its CPUs: {report}"
            )

    def _answer(self) -> str:
        """QEMU's report on its CPUs. QEMU may hang like the guest."""
        asked = [f"info lapic {cpu}" for cpu in range(self._cpus)] + ["info registers -a"]
        calls = [_call("qmp_capabilities")]
        calls += [_call("human-monitor-command", {"command-line": line}) for line in asked]
        into, out = (os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in self._fifos())
        try:
            os.write(into, "\n".join(calls).encode())
            # Leave out a line that is not complete yet.
            *replies, _ = _read_for(out, ANSWER_S).decode(errors="replace").split("\n")
            texts = (json.loads(line).get("return") for line in replies)
            return "\n".join(text for text in texts if isinstance(text, str))
        finally:
            os.close(into)
            os.close(out)

    def _fifos(self) -> list[Path]:
        return [self._folder / "monitor.in", self._folder / "monitor.out"]


def _call(name: str, arguments: Mapping[str, str] | None = None) -> str:
    return json.dumps({"execute": name, "arguments": arguments or {}})


def _read_for(descriptor: int, seconds: float) -> bytes:
    text = b""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        try:
            text += os.read(descriptor, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
    return text
