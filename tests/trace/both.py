# SPDX-License-Identifier: MIT OR Apache-2.0
"""One load on a loop device of this machine, traced by `steady trace` and blktrace together."""

from __future__ import annotations

import subprocess
from pathlib import Path

from blk_tracer import blk_tracer, top_instance
from blktrace_events import read_blktrace
from kept import Kept, read_kept
from loop_disk import STEADY, loop_disk, mixed_load
from stays import Agreement, compare, during


def trace_with_both(ext4: bool, ios: int, work: Path) -> tuple[Kept, Agreement]:
    """Trace one load on a loop device with both at once.

    blktrace begins first and ends last, and what else runs here may read the disk then (udev, for
    one): what it saw before and after `steady trace` is left out.
    """
    with top_instance(), loop_disk(ext4) as disk:
        load = mixed_load(disk, ios)
        with blk_tracer(disk.name, work):
            command = [str(STEADY), "trace", "--device", disk.node, "--keep", f"{work}/kept"]
            subprocess.run([*command, "--", "sh", "-c", load], check=True, stdout=subprocess.PIPE)
        dev = disk.dev
    kept = read_kept(work / "kept")
    found = kept.found(dev)
    return kept, compare(found, during(read_blktrace("card", work), found))
