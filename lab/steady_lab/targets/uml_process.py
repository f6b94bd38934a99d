# SPDX-License-Identifier: MIT OR Apache-2.0
"""The activity of a running guest, read from the host.

User Mode Linux is a program: its kernel is one process, whose memory /proc/PID/mem shows, and each
guest program is a child of it that the kernel stops at every system call. Nothing here writes
or stops a process, so a guest runs the same with and without it. Any of this may raise OSError,
ValueError or LookupError, because the guest may end at any time, or because the machine does not
permit it.
"""

import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from steady_lab.kernels.build import LabKernel

# Indices into the registers that UML keeps of a stopped program (struct user_regs_struct).
INSTRUCTION_POINTER = 16
STACK_POINTER = 19
WORD = struct.calcsize("Q")
# cpu_tasks[0] is a pointer to the current task; on 6.1 a process number comes first, and no such
# number is as large as an address.
PROCESS_NUMBER_MAX = 1 << 22
COMM_BYTES = 16
# The first task's name, in every kernel.
FIRST_COMM = b"swapper\0"


class UmlProcess:
    """A guest's kernel, found below the process `root`."""

    def __init__(self, kernel: LabKernel, root: int) -> None:
        """Raises LookupError if there is none yet."""
        linux = kernel.linux.stat()
        self._pid = next((pid for pid in _family(root) if _runs(pid, linux)), 0)
        if not self._pid:
            raise LookupError("no guest")
        symbols = _symbols(kernel.tree / "System.map")
        self._time = symbols["time_travel_time"]
        self._current = symbols["cpu_tasks"]
        first_task = symbols["init_task"]
        # The symbols have no sizes; the next symbol bounds the size of a task.
        self._task_bytes = min(at for at in symbols.values() if at > first_task) - first_task
        self._comm = self._read(first_task, self._task_bytes).index(FIRST_COMM)

    def virtual_ns(self) -> int:
        """The guest's clock, since it started."""
        (now_ns,) = struct.unpack("Q", self._read(self._time, WORD))
        return int(now_ns)

    def cpu_s(self) -> float:
        """CPU time of its kernel and its programs, those that have ended included."""
        pids = [self._pid, *_children(self._pid)]
        return sum(_cpu_ticks(pid) for pid in pids) / os.sysconf("SC_CLK_TCK")

    def doing(self) -> tuple[str, int | None]:
        """The current program's name and system call; None in its own code, or without a call."""
        words = struct.unpack("2Q", self._read(self._current, 2 * WORD))
        current = next((word for word in words if word > PROCESS_NUMBER_MAX), 0)
        task = self._read(current, self._task_bytes)
        comm = task[self._comm : self._comm + COMM_BYTES].partition(b"\0")[0]
        calls = (_call_of(pid, task) for pid in _children(self._pid))
        return comm.decode(errors="replace"), next(filter(None, calls), (None,))[0]

    def _read(self, address: int, count: int) -> bytes:
        with Path(f"/proc/{self._pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            read = memory.read(count)
        if len(read) != count:
            raise ValueError(f"only {len(read)} bytes at {address:#x}")
        return read


def call_names(kernel: LabKernel) -> Mapping[int, str]:
    """The system calls by number, as the kernel was built with them."""
    header = kernel.tree / "arch/x86/include/generated/uapi/asm/unistd_64.h"
    found = re.findall(r"^#define __NR_(\w+) (\d+)$", header.read_text(), re.MULTILINE)
    return {int(number): name for name, number in found}


def _family(root: int) -> Iterator[int]:
    """`root` and its descendants, each before its children."""
    family = [root]
    for pid in family:
        yield pid
        family += _children(pid)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int, program: os.stat_result) -> bool:
    """Whether it runs this very file, whatever its path is in the sandbox."""
    return os.path.samestat(Path(f"/proc/{pid}/exe").stat(), program)


def _symbols(system_map: Path) -> dict[str, int]:
    lines = (line.split() for line in system_map.read_text().splitlines())
    return {name: int(address, 16) for address, _, name in lines}


def _cpu_ticks(pid: int) -> int:
    """User and system time, its own and that of its children that have ended."""
    # The name comes second, in brackets, and may hold anything.
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in numbers[11:15])


def _call_of(pid: int, task: bytes) -> tuple[int] | None:
    """The system call in which the program `pid` is stopped, if it is the program of `task`.

    A task does not name its process of the host, but it holds the registers of the stopped program,
    and no two programs share a stack.
    """
    fields = Path(f"/proc/{pid}/syscall").read_text().split()
    if len(fields) < 3 or int(fields[0]) < 0:
        return None  # It runs, or was stopped by a page fault.
    stack, instruction = (struct.pack("Q", int(field, 16)) for field in fields[-2:])
    behind = (STACK_POINTER - INSTRUCTION_POINTER) * WORD
    at = task.find(instruction)
    while at >= 0:
        if task.startswith(stack, at + behind):
            return (int(fields[0]),)
        at = task.find(instruction, at + 1)
    return None
