# SPDX-License-Identifier: MIT OR Apache-2.0
"""The computers that QEMU emulates: a PC, and an ARM board that is QEMU's own.

Guests of both find their disks on PCI, and their root over 9P.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.root.lock import NATIVE


@dataclass(frozen=True)
class Machine:
    """`program` is QEMU's, of Debian's `package`; `board` chooses the board and the processor.

    The kernel's log is on the board's first serial line, which the kernel calls `console`; the
    command's output is on the one that `line` adds, `terminal` in the guest. `kernel_arguments` are
    more of the kernel's.
    """

    program: str
    package: str
    board: Sequence[str]
    console: str
    terminal: str
    line: Sequence[str]
    kernel_arguments: Sequence[str] = ()

    def serial(self, kernel_log: Path, console: Path) -> Sequence[str]:
        """QEMU's options for both lines, which it writes to files."""
        return ["-serial", f"file:{kernel_log}", *(word.format(console) for word in self.line)]


# Without no_timer_check a kernel that starts on a busy machine takes its timer for broken.
PC = Machine(
    "qemu-system-x86_64",
    "qemu-system-x86",
    ("-cpu", "max"),
    "ttyS0",
    "/dev/ttyS1",
    ("-serial", "file:{}"),
    kernel_arguments=("tsc=reliable", "no_timer_check"),
)
# A processor that runs 32-bit programs as well, and whose pointers need no authentication, which
# takes QEMU long.
ARM_BOARD = Machine(
    "qemu-system-aarch64",
    "qemu-system-arm",
    ("-M", "virt", "-cpu", "cortex-a72"),
    "ttyAMA0",
    "/dev/ttyS0",
    ("-chardev", "file,id=console,path={}", "-device", "pci-serial,chardev=console"),
)
# The same board with a processor of 32 bits, whose kernel needs LPAE for the board's PCI.
ARM_BOARD_32 = dataclasses.replace(
    ARM_BOARD, program="qemu-system-arm", board=("-M", "virt", "-cpu", "cortex-a15")
)
MACHINES: Mapping[str, Machine] = {NATIVE: PC, "arm64": ARM_BOARD, "armhf": ARM_BOARD_32}
