# SPDX-License-Identifier: MIT OR Apache-2.0
"""Declare a real-time task of this process to k2, the I/O scheduler."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType

from .errors import FailedError, InvalidError

NODE = "/dev/k2"


def _number(device: str | os.PathLike[str]) -> str:
    """Return the number of the whole disk, MAJOR:MINOR."""
    status = Path(device).stat()
    if not stat.S_ISBLK(status.st_mode):
        raise InvalidError(f"device: {os.fspath(device)}: is not a block device")
    major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
    folder = Path(f"/sys/dev/block/{major}:{minor}").resolve()
    if (folder / "partition").exists():
        folder = folder.parent
    return (folder / "dev").read_text(encoding="ascii").strip()


class Task:
    """A declared task: k2 guards the requests of this process on a level until it is closed.

    Background and lower levels block a request for `block_us` at most, from the first request on.
    The words are those of /dev/k2 (docs/reference/k2.md): `level`, `period_us`, `block_us`, and if
    need be `jitter_us`, `think_us`, `exact`, `sporadic`, `owner`. InvalidError: k2 rejects them;
    FailedError: /dev/k2 cannot be used.
    """

    def __init__(self, device: str | os.PathLike[str], **words: int | str) -> None:
        number = _number(device)
        try:
            self._fd = os.open(NODE, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise FailedError(f"{NODE}: {error.strerror} (is k2 loaded? modprobe k2)") from error
        line = " ".join([f"dev={number}", *(f"{key}={value}" for key, value in words.items())])
        try:
            os.write(self._fd, line.encode())
        except OSError as error:
            lines = self._lines()
            reason = lines[-1].removeprefix("error ") if lines else error.strerror
            self.close()
            raise InvalidError(f"{NODE}: {reason}") from error

    def _lines(self) -> list[str]:
        return os.pread(self._fd, 1 << 16, 0).decode().splitlines()

    def fileno(self) -> int:
        """Return the open file, to poll for POLLPRI."""
        return self._fd

    def state(self) -> dict[str, str]:
        """Return words, state and counts, as k2 shows them."""
        return dict(word.split("=", 1) for word in self._lines()[0].split())

    def close(self) -> None:
        """End the task. May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Task:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()
