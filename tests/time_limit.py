# SPDX-License-Identifier: MIT OR Apache-2.0
"""A time limit for each test, so that one that waits for ever fails by name and the others run.

The limit is far above what any test needs next to other work. What the test has started is killed
first: the end of a `with Popen(...)` waits for it. Fixtures have no limit: they may build a kernel.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

LIMIT_S = 1200.0


@contextmanager
def time_limit(seconds: float = LIMIT_S) -> Iterator[None]:
    """Kill what runs below this process and raise TimeoutError when the time is over.

    Called by conftest.py for each test, in the main thread. A test that uses SIGALRM itself has no
    limit.
    """

    def expire(_number: int, _frame: FrameType | None) -> None:
        for pid in _descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise TimeoutError(f"the test had not ended after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _descendants(root: int) -> list[int]:
    """The processes that `root` has started, and those that these have started."""
    found = []
    for path in Path(f"/proc/{root}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for word in path.read_text().split():
                found += [int(word), *_descendants(int(word))]
    return found
