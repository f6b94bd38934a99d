# SPDX-License-Identifier: MIT OR Apache-2.0
"""Why split_kib=4 keeps 70 % of k2's throughput here and 72 % in the K2-split paper.

Both are one cycle's data over one cycle's time: one real-time request of 64 KiB and one background
piece. The closed form that the device is fitted with (devices/fit.py) gives the parts of a cycle,
the background sizes that fit the paper's row for K2, and the conditions for 72 %.
"""

from __future__ import annotations

from dataclasses import dataclass

from steady_lab.devices.fit import DEVICE, JUMPS_PER_CYCLE, Cell, Timing, predict, timing_of
from steady_lab.devices.spec import load_device

RT_KIB = 64
SPLIT_KIB = 4
WHOLE_KIB, TABLE_KIB = 512, 128
# Section 5.2 and Table 3 of the paper: random reads, real-time 64 KiB.
PAPER_SPLIT_MIB_S, PAPER_TABLE_MIB_S, PAPER_SHARE = 62.05, 75.63, 0.72


@dataclass(frozen=True)
class Cycle:
    """One real-time request and one background piece on the fitted device."""

    bg_kib: int
    fixed_us: float
    data_us: float
    mib_s: float

    @property
    def kib(self) -> int:
        """Return the data of a cycle."""
        return RT_KIB + self.bg_kib


def cycle_of(timing: Timing, bg_kib: int) -> Cycle:
    """Return the parts of a cycle with this background piece, by the fitted model."""
    mib_s, _ = predict(timing, Cell("", "read", "random", RT_KIB, 1, bg_kib))
    kib = RT_KIB + bg_kib
    total_us = kib / 1024 / mib_s * 1e6
    data_us = kib * timing.per_kib
    return Cycle(bg_kib, total_us - data_us, data_us, mib_s)


def fixed_us_for(share: float, split: Cycle, whole: Cycle) -> float:
    """Return the fixed time per cycle with which splitting would keep this share."""
    gain = share * whole.kib
    return (split.kib * whole.data_us - gain * split.data_us) / (gain - split.kib)


def share_markdown() -> str:
    """Return the computation as Markdown, from the device spec."""
    timing = timing_of(load_device(DEVICE), "read")
    split, table, whole = (cycle_of(timing, kib) for kib in (SPLIT_KIB, TABLE_KIB, WHOLE_KIB))
    paper_whole = PAPER_SPLIT_MIB_S / PAPER_SHARE
    lines = [
        "| cycle: 64 KiB real-time and | data, us | fixed, us | MiB/s, model | MiB/s, published "
        "| split_kib=4 keeps, model | published |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        _row("a piece of 4 KiB", split, PAPER_SPLIT_MIB_S, split),
        _row("a whole 512 KiB", whole, paper_whole, split),
        _row("128 KiB (Table 3's row for K2)", table, PAPER_TABLE_MIB_S, split),
        "",
        _fixed_text(timing),
        _share_text(split, whole),
    ]
    return "\n".join(lines)


def _fixed_text(timing: Timing) -> str:
    n = JUMPS_PER_CYCLE
    return (
        f"Data take {timing.per_kib:.1f} us per KiB. The fixed time is {n} x (base "
        f"{timing.base:.0f} us + jump {timing.jump:.0f} us) and, for {timing.slow_share:.0%} of "
        f"the time, {n} x {timing.slow:.0f} us more, under any scheduler."
    )


def _share_text(split: Cycle, whole: Cycle) -> str:
    paper_whole = PAPER_SPLIT_MIB_S / PAPER_SHARE
    wanted_us = fixed_us_for(PAPER_SHARE, split, whole)
    return (
        f"The paper's {PAPER_SPLIT_MIB_S:g} MiB/s are {PAPER_SHARE:.0%} of {paper_whole:.1f}, a "
        f"background of 512 KiB, and {PAPER_SPLIT_MIB_S / PAPER_TABLE_MIB_S:.0%} of the "
        f"{PAPER_TABLE_MIB_S:g} in Table 3, one of 128 KiB. {PAPER_SHARE:.0%} here takes a fixed "
        f"time of {wanted_us:.0f} us, {1 - wanted_us / split.fixed_us:.0%} below the fit, whose "
        "error is 7 % (docs/devices.md)."
    )


def _row(what: str, cycle: Cycle, published: float, split: Cycle) -> str:
    shares = "| |"
    if cycle is not split:
        shares = f"| {split.mib_s / cycle.mib_s:.1%} | {PAPER_SPLIT_MIB_S / published:.1%} |"
    return (
        f"| {what} | {cycle.data_us:.0f} | {cycle.fixed_us:.0f} | {cycle.mib_s:.1f} "
        f"| {published:.1f} {shares}"
    )
