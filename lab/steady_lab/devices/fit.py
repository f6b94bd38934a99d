# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fit the emulated eMMC's timing to published figures.

The experiment of each figure repeats a cycle: one real-time request (or its pieces, when
max_sectors_kb cuts it), then one background piece, on a device that serves one command at a time.
With the timing model of lab/devices/flash a cycle's time is known in closed form
for each of four states (slow episode or not, write pause or not); their shares give mean and 99th
percentile. Levenberg-Marquardt on relative errors does the rest. Times are in us.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steady_lab.devices.spec import DeviceSpec
from steady_lab.paths import PROJECT
from steady_lab.toml_table import Table, load_toml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

DEVICE = PROJECT / "experiments/devices/foresee-ncemad9d-usb.toml"
PUBLISHED = PROJECT / "experiments/devices/published/s1.toml"
SCHEMA = "steadyio.published/1"
ROUND_NS = 100  # finer than any published value
# Changes of operation per cycle that do not continue where the last one ended: the real-time
# request's first piece and the background piece.
JUMPS_PER_CYCLE = 2
FITTED = {
    "read": ("base", "per_kib", "jump", "slow"),
    "write": ("base", "per_kib", "jump", "slow", "pause"),
}
# Start of the search, in us: constants, so that the result does not depend on the spec.
START = {"base": 200.0, "per_kib": 10.0, "jump": 100.0, "slow": 200.0, "pause": 2000.0}
NUMBER_MAX = 1_000_000
VALUE_MIN = 0.001


@dataclass(frozen=True)
class Cell:
    """One published measurement; `total_mib_s` or `rt_p99_ms` may be missing."""

    where: str
    op: str
    pattern: str
    rt_kib: int
    rt_pieces: int
    bg_kib: int
    total_mib_s: float | None = None
    rt_p99_ms: float | None = None
    left_out: str = ""
    note: str = ""

    @property
    def commands(self) -> int:
        """Commands the device gets per cycle."""
        return self.rt_pieces + 1

    @property
    def kib(self) -> int:
        """Data per cycle."""
        return self.rt_kib + self.bg_kib


@dataclass(frozen=True)
class Timing:
    """The numbers of the model for one direction; times in us."""

    base: float
    per_kib: float
    jump: float
    slow: float
    pause: float
    pause_kib: int
    slow_share: float  # of time


@dataclass(frozen=True)
class Figure:
    """One published value next to the model's."""

    cell: Cell
    quantity: str  # "total_mib_s" or "rt_p99_ms"
    published: float
    modelled: float

    @property
    def error(self) -> float:
        """Relative error of the model."""
        return self.modelled / self.published - 1


def load_published(path: Path) -> list[Cell]:
    """Read published figures. Raises SpecError."""
    table = Table(load_toml(path), str(path))
    table.choice("schema", (SCHEMA,))
    cells = [_cell(item) for item in table.tables("cell")]
    table.close()
    return cells


def _cell(table: Table) -> Cell:
    cell = Cell(
        where=table.text("where"),
        op=table.choice("op", tuple(FITTED)),
        pattern=table.text("pattern"),
        rt_kib=table.integer("rt_kib", 1, NUMBER_MAX),
        rt_pieces=table.integer("rt_pieces", 1, NUMBER_MAX),
        bg_kib=table.integer("bg_kib", 1, NUMBER_MAX),
        total_mib_s=_value(table, "total_mib_s"),
        rt_p99_ms=_value(table, "rt_p99_ms"),
        left_out=table.text("left_out", default=""),
        note=table.text("note", default=""),
    )
    table.close()
    return cell


def _value(table: Table, key: str) -> float | None:
    return table.number(key, VALUE_MIN, NUMBER_MAX) if table.has(key) else None


def timing_of(spec: DeviceSpec, op: str) -> Timing:
    """The timing of one direction as a device spec has it."""
    values = spec.values
    period_us = values["slow_period_us"]
    return Timing(
        base=values[f"{op}_base_ns"] / 1000,
        per_kib=values[f"{op}_per_kib_ns"] / 1000,
        jump=values[f"{op}_jump_ns"] / 1000,
        slow=values[f"{op}_slow_ns"] / 1000,
        pause=values["write_pause_ns"] / 1000 if op == "write" else 0.0,
        pause_kib=values["write_pause_kib"] if op == "write" else 0,
        slow_share=values["slow_length_us"] / period_us if period_us else 0.0,
    )


def predict(timing: Timing, cell: Cell) -> tuple[float, float]:
    """Throughput of both processes in MiB/s and 99th percentile of the real-time one in ms."""
    quiet = cell.commands * timing.base + cell.kib * timing.per_kib + JUMPS_PER_CYCLE * timing.jump
    slow = quiet + cell.commands * timing.slow
    pausing = min(1.0, cell.kib / timing.pause_kib) if timing.pause_kib else 0.0
    quiet_mean, slow_mean = quiet + pausing * timing.pause, slow + pausing * timing.pause
    # Cycles per us in and out of slow episodes, weighted by time: the share of cycles follows.
    quiet_rate = (1 - timing.slow_share) / quiet_mean
    slow_rate = timing.slow_share / slow_mean
    slow_cycles = slow_rate / (quiet_rate + slow_rate)
    states = [
        (quiet, (1 - slow_cycles) * (1 - pausing)),
        (slow, slow_cycles * (1 - pausing)),
        (quiet + timing.pause, (1 - slow_cycles) * pausing),
        (slow + timing.pause, slow_cycles * pausing),
    ]
    return cell.kib / 1024 * (quiet_rate + slow_rate) * 1e6, _quantile(states, 0.99) / 1000


def _quantile(states: list[tuple[float, float]], share: float) -> float:
    reached = 0.0
    for value, weight in sorted(states):
        reached += weight
        if reached >= share:
            return value
    return max(states)[0]


def compare(timing: Timing, cells: list[Cell]) -> list[Figure]:
    """Every published value of the cells next to the model's."""
    figures = []
    for cell in cells:
        modelled = predict(timing, cell)
        for quantity, value in zip(("total_mib_s", "rt_p99_ms"), modelled, strict=True):
            published = getattr(cell, quantity)
            if published is not None:
                figures.append(Figure(cell, quantity, published, value))
    return figures


def rms(figures: list[Figure]) -> float:
    """Root mean square of the relative errors of the fitted figures."""
    errors = [figure.error for figure in figures if not figure.cell.left_out]
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def fit(fixed: Timing, op: str, cells: list[Cell], without: str = "") -> Timing:
    """Least squares of relative errors. What the figures leave open is taken from `fixed`.

    `without` names a term of the model to leave out (it is zero then).
    """
    # Here, because numpy does not run on the oldest x86-64 processors, and figures need no fit.
    import numpy as np

    fitted = [cell for cell in cells if cell.op == op and not cell.left_out]
    keys = [key for key in FITTED[op] if key != without]
    zero: dict[str, Any] = dict.fromkeys(FITTED["write"], 0.0)

    def timing(x: Vector) -> Timing:
        found = {key: max(float(us), 0.0) for key, us in zip(keys, x, strict=True)}
        return replace(fixed, **(zero | found))

    def residuals(x: Vector) -> Vector:
        return np.array([figure.error for figure in compare(timing(x), fitted)])

    start = np.array([START[key] for key in keys])
    return timing(_levenberg_marquardt(residuals, start))


def spec_values(timing: Timing, op: str) -> dict[str, int]:
    """A fit as keys and values of a device spec, in ns."""
    return {
        f"{key}_ns": round(getattr(timing, key) * 1000 / ROUND_NS) * ROUND_NS for key in FITTED[op]
    }


def _levenberg_marquardt(residuals: Callable[[Vector], Vector], x: Vector) -> Vector:
    """Minimum of the sum of squares, from x. The Jacobian is taken numerically."""
    import numpy as np

    damping, now = 1e-3, residuals(x)
    for _ in range(200):
        step_of = np.maximum(np.abs(x) * 1e-4, 1e-6)
        jacobian = np.column_stack(
            [(residuals(x + np.eye(len(x))[i] * s) - now) / s for i, s in enumerate(step_of)]
        )
        scale = np.diag(np.sum(jacobian**2, axis=0) + 1e-12)
        step = np.linalg.solve(jacobian.T @ jacobian + damping * scale, -jacobian.T @ now)
        tried = residuals(x + step)
        if tried @ tried < now @ now:
            converged = np.max(np.abs(step) / (np.abs(x) + 1)) < 1e-9
            x, now, damping = x + step, tried, damping / 3
            if converged:
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return x


def headline(read: Timing) -> tuple[float, float]:
    """Real-time p99, 64 KiB next to 512 KiB: K2 and max_sectors_kb=4 over split_kib=4."""

    def p99_ms(pieces: int, bg_kib: int) -> float:
        return predict(read, Cell("", "read", "random", 64, pieces, bg_kib))[1]

    return p99_ms(1, 512) / p99_ms(1, 4), p99_ms(16, 4) / p99_ms(1, 4)


def mismatches(spec: DeviceSpec, cells: list[Cell]) -> list[str]:
    """Where the spec's values differ from the result of the fit."""
    found = []
    for op in FITTED:
        for key, value in spec_values(fit(timing_of(spec, op), op, cells), op).items():
            have = spec.values[f"{op}_{key}"]
            if have != value:
                found.append(f"{op}.{key} = {have}, fitted {value}")
    return found
