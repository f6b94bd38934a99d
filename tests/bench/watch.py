# SPDX-License-Identifier: MIT OR Apache-2.0
"""CPU time of `steady watch` next to 5,000 requests a second under k2, in instructions.

In a guest under QEMU whose clock counts instructions, one a ns: a share of its time is one of a
core that does 1,000,000,000 instructions a second. What the kernel needs to show its counters is in
it. By hand: `build/venv/bin/python tests/bench/watch.py`.
"""

import re
import tempfile
from pathlib import Path

from steady_lab.kernels.stock import stock_kernel
from steady_lab.paths import GUEST_PROJECT
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootRequest

SCRIPT = f"{GUEST_PROJECT}/tests/bench/watch.sh"
DISK = "null_blk nr_devices=1 irqmode=2 completion_nsec=50000"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="steadyio-watch-") as work:
        target = Qemu(stock_kernel("6.12"), 1, instruction_ns=1)
        request = BootRequest(["sh", SCRIPT], Path(work), modules=[DISK], timeout_s=1800)
        result = target.boot(request)
    assert result.exit_status == 0, result.output[-3000:]
    shown = r"^(?:\d\d:.*|steady: watched.*|requests.*|and with.*)$"
    print("\n".join(re.findall(shown, result.output, re.M)))


if __name__ == "__main__":
    main()
