# SPDX-License-Identifier: MIT OR Apache-2.0
"""Faults of the flash model: [[fault]] tables of a device spec, as module parameters."""

from __future__ import annotations

from steady_lab.errors import SpecError
from steady_lab.toml_table import Table

FAULTS_MAX = 8
OPS = ("read", "write", "erase", "flush", "any")
OUTCOMES = ("error", "timeout")
WHENS = ("at_op", "sectors", "ppm")
_I64_MAX = 2**63 - 1


def take_faults(spec: Table) -> list[str]:
    """Read all faults; raises SpecError."""
    tables = spec.tables("fault")
    if len(tables) > FAULTS_MAX:
        raise spec.fail("fault", f"at most {FAULTS_MAX} tables [[fault]]")
    return [_fault(table) for table in tables]


def _fault(table: Table) -> str:
    on, outcome = table.choice("on", OPS), table.choice("outcome", OUTCOMES)
    given = [key for key in WHENS if table.has(key)]
    if len(given) != 1:
        raise SpecError(f"{table.where}: needs exactly one of {', '.join(WHENS)}")
    word = f"{on}:{outcome}:{_when(table, given[0])}"
    table.close()
    return word


def _when(table: Table, key: str) -> str:
    if key == "at_op":
        return f"op:{table.integer(key, 1, _I64_MAX)}"
    if key == "ppm":
        return f"ppm:{table.integer(key, 0, 1_000_000)}"
    allowed = f"[first, last], whole numbers in this order, from 0 to {_I64_MAX}"
    sectors = table.items(key, allowed)
    # type(), because bool is an int in Python, but `true` is no number in TOML.
    if len(sectors) != 2 or any(type(sector) is not int for sector in sectors):
        raise table.fail(key, allowed)
    first, last = sectors
    if not 0 <= first <= last <= _I64_MAX:
        raise table.fail(key, allowed)
    return f"sectors:{first}-{last}"
