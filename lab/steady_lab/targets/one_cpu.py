# SPDX-License-Identifier: MIT OR Apache-2.0
"""Choose a CPU of the host for a guest of User Mode Linux. uml_guest.py runs the guest there.

The kernel and its processes take turns at each system call and page fault (ptrace). On two CPUs
each turn wakes the other CPU up, which takes longer than the turn.
"""

import fcntl
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


@contextmanager
def one_cpu() -> Iterator[list[str]]:
    """Choose a CPU that no other guest has, else any; yield the words that run a command there.

    The lock on the CPU's folder in sysfs is known to guests of other clones and users, too.
    """
    allowed = sorted(os.sched_getaffinity(0))
    lock = None
    for cpu in allowed:
        lock = _locked(cpu)
        if lock is not None:
            break
    else:
        cpu = random.choice(allowed)
    try:
        yield ["taskset", "--cpu-list", str(cpu)]
    finally:
        if lock is not None:
            os.close(lock)


def _locked(cpu: int) -> int | None:
    """Return the descriptor that holds the lock of a CPU; None if another guest has it."""
    try:
        folder = os.open(CPUS / f"cpu{cpu}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(folder)
        return None
    return folder
