# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab cpu-cost --locks`, small; `make test-races`, since it needs a kernel of its own."""

import sys
from pathlib import Path

from steady_lab.figures.lock_times import measure_locks
from steady_lab.paths import PROJECT

sys.path.insert(0, str(PROJECT / "tests" / "stock"))
import guest

pytestmark = guest.needs_qemu


def test_each_read_takes_a_lock_of_its_scheduler_and_holds_it(work: Path) -> None:
    for runs in measure_locks(work, small=True).values():
        for held in runs:
            assert held.taken > held.reads
            assert held.instructions > held.taken
