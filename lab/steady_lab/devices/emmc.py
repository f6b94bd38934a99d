# SPDX-License-Identifier: MIT OR Apache-2.0
"""The emulated eMMC, lab/devices/emmc: the keys of its specs, and its module parameters."""

from __future__ import annotations

from collections.abc import Mapping

from steady_lab.devices import flash
from steady_lab.devices.kind import Kind, Number
from steady_lab.kernels.modules import emulated
from steady_lab.toml_table import Table

QUEUE_DEPTH_MAX = 32
PRODUCT_CHARS = 6

NUMBERS: tuple[Number, ...] = (
    *flash.NUMBERS,
    Number("card", "status_ns", "status_ns", 0, flash.TIME_NS_MAX, 0, "ns",
           "CMD13, which the kernel sends after every write"),
    Number("queue", "depth", "queue_depth", 0, QUEUE_DEPTH_MAX, 0, "",
           "command queue; 0: none, else 3..32"),
    *flash.costs("erase", 1_000_000, "erase, trim or discard"),
    Number("power", "cut_after_writes", "power_cut_after_writes", 0, flash.U64_MAX, 0, "",
           "cut power when this many writes are acknowledged; 0: never"),
)  # fmt: skip


def _more(spec: Table, tables: Mapping[str, Table], values: Mapping[str, int]) -> list[str]:
    if values["queue_depth"] in (1, 2):
        # The MMC core leaves shorter queues unused.
        raise tables["queue"].fail("depth", f"0, or a whole number from 3 to {QUEUE_DEPTH_MAX}")
    return flash.more_params(spec, tables, values, PRODUCT_CHARS)


EMMC = Kind(
    name="emmc",
    module=emulated("steady_emmc", "emmc"),
    node="/dev/mmcblk0",
    trouble=r"steady_emmc: (?:write_log ends early|memory is full)",
    numbers=NUMBERS,
    more=_more,
    stock_drivers=("mmc_block",),
)
