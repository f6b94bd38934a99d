# SPDX-License-Identifier: MIT OR Apache-2.0
"""The emulated SCSI disk, lab/devices/scsi: the keys of its specs, and its module parameters."""

from __future__ import annotations

from collections.abc import Mapping

from steady_lab.devices import flash
from steady_lab.devices.kind import Kind, Number
from steady_lab.kernels.modules import emulated
from steady_lab.toml_table import Table

SLOTS_MAX = 32
PRODUCT_CHARS = 16

NUMBERS: tuple[Number, ...] = (
    *flash.NUMBERS,
    Number("host", "slots", "slots", 1, SLOTS_MAX, 1, "",
           "commands at a time; a USB bridge without UAS has 1"),
)  # fmt: skip


def _more(spec: Table, tables: Mapping[str, Table], values: Mapping[str, int]) -> list[str]:
    return flash.more_params(spec, tables, values, PRODUCT_CHARS)


SCSI = Kind(
    name="scsi",
    module=emulated("steady_scsi", "scsi"),
    node="/dev/sda",
    trouble=r"steady_scsi: memory is full",
    numbers=NUMBERS,
    more=_more,
    drivers=("sd_mod",),
    stock_drivers=("sd_mod",),
    # A mounted file system holds the host's module.
    unload=False,
    write_log=False,
)
