# SPDX-License-Identifier: MIT OR Apache-2.0
"""A kind of emulated hardware; each kind has a file, KINDS lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steady_lab.kernels.modules import Module
from steady_lab.toml_table import Table


@dataclass(frozen=True)
class Number:
    """One integer of a spec: `table.key` in TOML, `param` of the kernel module."""

    table: str
    key: str
    param: str
    low: int
    high: int
    default: int | None  # None: the spec must give it
    unit: str
    meaning: str

    @property
    def name(self) -> str:
        """The key as the documentation names it."""
        return f"{self.table}.{self.key}"


@dataclass(frozen=True)
class Kind:
    """A kind of device, by the name that specs give it, and the module that emulates it.

    `node` is its block device in the guest; it appears some milliseconds after the module is
    loaded. `trouble` matches lines of the kernel log that mean it failed. `more` reads a spec's
    keys besides `numbers`, checks relations between numbers, and returns further parameters.
    `drivers` are modules of the lab's kernels that it needs, `stock_drivers` of Debian's; None if
    it needs User Mode Linux. `unload`: its own module can be unloaded.
    `write_log`: it can log what it writes.
    """

    name: str
    module: Module
    node: str
    trouble: str
    numbers: tuple[Number, ...]
    more: Callable[[Table, Mapping[str, Table], Mapping[str, int]], list[str]]
    drivers: tuple[str, ...] = ()
    stock_drivers: tuple[str, ...] | None = None
    unload: bool = True
    write_log: bool = True
