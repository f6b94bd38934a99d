# SPDX-License-Identifier: MIT OR Apache-2.0
"""What dd says on its standard error of how much it copied, and how fast."""

from __future__ import annotations

import re

from steady_lab.errors import LabError

MIB = 1 << 20
DD_LINE = re.compile(r"^(\d+) bytes (?:\(.*\) )?copied, ([0-9.e+-]+) s,", re.MULTILINE)


def throughput(output: str) -> tuple[int, float]:
    """Return bytes and MiB/s over all runs of dd in an output; raises LabError if it has none."""
    runs = [(int(size), float(seconds)) for size, seconds in DD_LINE.findall(output)]
    if not runs:
        raise LabError(f"dd said nothing of its throughput: {output!r}")
    copied = sum(size for size, _ in runs)
    return copied, copied / MIB / sum(seconds for _, seconds in runs)
