# SPDX-License-Identifier: MIT OR Apache-2.0
"""The claims of a figure: a quantity with bounds, evaluated on the measured rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.figures.quantity import Alone, Quantity, take_quantity
from steady_lab.figures.rows import Measurements
from steady_lab.figures.workload import Workload
from steady_lab.toml_table import NAME_PATTERN, Table

BOUND_MAX = 1e12


@dataclass(frozen=True)
class Check:
    """A claim: `quantity` lies within the bounds; `paper` is the paper's finding.

    `reason` explains a value that differs. Not `reproduced`: the value is known to lie
    outside.
    """

    name: str
    text: str
    quantity: Quantity
    min: float | None
    max: float | None
    paper: float | None
    reason: str
    reproduced: bool

    @property
    def bound(self) -> str:
        """Return the bounds in words, with the unit."""
        parts = [f">= {self.min:g}"] if self.min is not None else []
        parts += [f"<= {self.max:g}"] if self.max is not None else []
        return f"{' and '.join(parts)} {self.quantity.unit}".rstrip()


@dataclass(frozen=True)
class CheckResult:
    """A check, its measured value, and whether that is as expected."""

    check: Check
    value: float
    passed: bool

    @property
    def verdict(self) -> str:
        """Return PASS, NOT REPRODUCED or FAIL; a claim known not to hold fails if it does."""
        if not self.passed:
            return "FAIL"
        return "PASS" if self.check.reproduced else "NOT REPRODUCED"


def take_check(table: Table, workload: Workload, alone: Alone | None) -> Check:
    """Read one [[check]]; raises SpecError, also when it has no bound or min > max."""
    name = table.text("name", NAME_PATTERN)
    table.where = f"{table.where} ({name})"
    text = table.text("text")
    quantity = take_quantity(table, workload, alone)
    low, high, paper = (_bound(table, key) for key in ("min", "max", "paper"))
    if low is None and high is None:
        raise table.fail("min", "given, or max, or both: a check without a bound cannot fail")
    if low is not None and high is not None and low > high:
        raise table.fail("min", f"at most max = {high:g}")
    reason = table.text("reason", default="")
    reproduced = table.flag("reproduced") if table.has("reproduced") else True
    if not reproduced and (paper is None or not reason):
        raise table.fail("reproduced", "false only with the paper's value and a reason")
    table.close()
    return Check(name, text, quantity, low, high, paper, reason, reproduced)


def _bound(table: Table, key: str) -> float | None:
    return table.number(key, -BOUND_MAX, BOUND_MAX) if table.has(key) else None


def evaluate(checks: Sequence[Check], measured: Measurements) -> list[CheckResult]:
    """Evaluate all checks in order; raises ResultError when a cell they need is missing."""
    results = []
    for check in checks:
        value = check.quantity.evaluate(measured)
        above = check.min is None or value >= check.min
        below = check.max is None or value <= check.max
        results.append(CheckResult(check, value, (above and below) == check.reproduced))
    return results
