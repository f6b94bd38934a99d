# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device fit`: fit the emulated eMMC's timing to published figures.

The experiment behind each figure is a cycle: one real-time request (or its pieces, when
max_sectors_kb cuts it), then one background piece, for ever, on a device that serves one command
at a time. With the timing model of lab/devices/flash_model.h a cycle's time is known in closed
form for each of four states (slow episode or not, write pause or not); their shares give mean
and 99th percentile. Levenberg-Marquardt on relative errors does the rest. Times are in us.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steady_lab.device_spec import NUMBERS, DeviceSpec, SpecError, load_device
from steady_lab.paths import PROJECT

DEVICE = PROJECT / "experiments/devices/foresee-ncemad9d-usb.toml"
PUBLISHED = PROJECT / "experiments/devices/published/s1.toml"
PAGE = PROJECT / "docs/devices.md"
SCHEMA = "steadyio.published/1"
ROUND_NS = 100  # finer than any published figure
# Changes of operation per cycle that do not continue where the last one ended: the real-time
# request's first piece and the background piece.
JUMPS_PER_CYCLE = 2
FITTED = {
    "read": ("base", "per_kib", "jump", "slow"),
    "write": ("base", "per_kib", "jump", "slow", "pause"),
}
# Where the search starts, in us: round numbers, so that the result does not depend on the spec.
START = {"base": 200.0, "per_kib": 10.0, "jump": 100.0, "slow": 200.0, "pause": 2000.0}
_NUMBERS = {"rt_kib", "rt_pieces", "bg_kib"}
_VALUES = {"total_mib_s", "rt_p99_ms"}
_CELL_KEYS = {"where", "op", "pattern", "left_out", "note"} | _NUMBERS | _VALUES

Vector = NDArray[np.float64]


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
    """What the model needs to know of one direction; times in us."""

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
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error
    if raw.get("schema") != SCHEMA:
        raise SpecError(f"{path}: schema = {raw.get('schema')!r}: must be {SCHEMA!r}")
    return [_cell(f"{path}: cell {n}", cell) for n, cell in enumerate(raw.get("cell", []), 1)]


def _cell(where: str, raw: dict[str, Any]) -> Cell:
    for key in raw:
        if key not in _CELL_KEYS:
            raise SpecError(f"{where}: {key}: unknown key; known: {', '.join(sorted(_CELL_KEYS))}")
    if raw.get("op") not in FITTED:
        raise SpecError(f"{where}: op = {raw.get('op')!r}: must be one of {', '.join(FITTED)}")
    for key in _NUMBERS | (_VALUES & raw.keys()):
        value = raw.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise SpecError(f"{where}: {key} = {value!r}: must be a number above 0")
    return Cell(**raw)


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
    """Root mean square of the relative errors of what is fitted."""
    errors = [figure.error for figure in figures if not figure.cell.left_out]
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def fit(fixed: Timing, op: str, cells: list[Cell], without: str = "") -> Timing:
    """Least squares of relative errors. What the figures leave open is taken from `fixed`.

    `without` names a term of the model to leave out (it is zero then).
    """
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


def fit_markdown(spec: DeviceSpec, cells: list[Cell]) -> str:
    """The fit as docs/devices.md shows it: one table per direction, errors included."""
    lines = []
    for op in FITTED:
        figures = compare(timing_of(spec, op), [cell for cell in cells if cell.op == op])
        worst = max((f for f in figures if not f.cell.left_out), key=lambda f: abs(f.error))
        lines += [
            f"**{op.capitalize()}s**: root mean square error {rms(figures):.1%}, "
            f"largest {worst.error:+.0%}.",
            "",
            "| published in | pattern | real-time KiB | background KiB | quantity | published "
            "| model | error |",
            "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |",
            *map(_row, figures),
            "",
        ]
    return "\n".join(lines)


def choices_markdown(spec: DeviceSpec, cells: list[Cell]) -> str:
    """What each term of the model and each assumption is worth: the error of other fits."""
    share = spec.values["slow_length_us"] / spec.values["slow_period_us"]
    choices: list[tuple[str, str, dict[str, Any]]] = [
        ("as in the spec", "", {}),
        ("without jump", "jump", {}),
        ("without slow episodes", "slow", {}),
        ("without write pauses", "pause", {}),
        *((f"slow for {s:.0%} of the time", "", {"slow_share": s}) for s in (0.03, 0.08)),
        *((f"a pause per {kib} KiB", "", {"pause_kib": kib}) for kib in (2560, 6144)),
    ]
    lines = [
        f"| model (spec: slow for {share:.0%} of the time, a pause per "
        f"{spec.values['write_pause_kib']} KiB) | reads, error | writes, error | K2 / split "
        "| max_sectors_kb / split |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, without, changed in choices:
        fits = {
            op: fit(replace(timing_of(spec, op), **changed), op, cells, without) for op in FITTED
        }
        errors = [
            f"{rms(compare(fits[op], [c for c in cells if c.op == op])):.1%}" for op in FITTED
        ]
        ratios = [f"{ratio:.2f}" for ratio in headline(fits["read"])]
        lines.append(f"| {' | '.join([name, *errors, *ratios])} |")
    return "\n".join([*lines, ""])


def headline(read: Timing) -> tuple[float, float]:
    """Real-time p99, 64 KiB next to 512 KiB: K2 and max_sectors_kb=4 over split_kib=4."""

    def p99_ms(pieces: int, bg_kib: int) -> float:
        return predict(read, Cell("", "read", "random", 64, pieces, bg_kib))[1]

    return p99_ms(1, 512) / p99_ms(1, 4), p99_ms(16, 4) / p99_ms(1, 4)


def keys_markdown() -> str:
    """Every number of a device spec with unit, range and default."""
    lines = ["| key | unit | range | default | meaning |", "| --- | --- | --- | --- | --- |"]
    for number in NUMBERS:
        high = "2^64 - 1" if number.high == 2**64 - 1 else f"{number.high}"
        default = "required" if number.default is None else f"{number.default}"
        lines.append(
            f"| `{number.name}` | {number.unit or '-'} | {number.low} .. {high} | {default} "
            f"| {number.meaning} |"
        )
    return "\n".join([*lines, ""])


def _row(figure: Figure) -> str:
    cell = figure.cell
    rt = f"{cell.rt_kib}" if cell.rt_pieces == 1 else (
        f"{cell.rt_pieces} x {cell.rt_kib // cell.rt_pieces}"
    )  # fmt: skip
    unit = {"total_mib_s": "throughput, MiB/s", "rt_p99_ms": "p99, ms"}[figure.quantity]
    mark = " (not fitted)" if cell.left_out else " (*)" if cell.note else ""
    return (
        f"| {cell.where}{mark} | {cell.pattern} | {rt} | {cell.bg_kib} | {unit} "
        f"| {figure.published:.2f} | {figure.modelled:.2f} | {figure.error:+.0%} |"
    )


def written_page(text: str, spec: DeviceSpec, cells: list[Cell]) -> str:
    """The page with its computed parts written anew. Raises SpecError if a marker is missing."""
    text = _with_part(text, "fit", fit_markdown(spec, cells))
    text = _with_part(text, "choices", choices_markdown(spec, cells))
    return _with_part(text, "keys", keys_markdown())


def _with_part(text: str, name: str, part: str) -> str:
    begin, end = f"<!-- {name}: written by `steady-lab device fit` -->", f"<!-- /{name} -->"
    head, found, rest = text.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found or not found_end:
        raise SpecError(f"{PAGE}: markers {begin!r} and {end!r} are missing")
    return f"{head}{begin}\n\n{part}\n{end}{tail}"


def mismatches(spec: DeviceSpec, cells: list[Cell]) -> list[str]:
    """Where the spec's values differ from what the fit gives for it."""
    found = []
    for op in FITTED:
        for key, value in spec_values(fit(timing_of(spec, op), op, cells), op).items():
            have = spec.values[f"{op}_{key}"]
            if have != value:
                found.append(f"{op}.{key} = {have}, fitted {value}")
    return found


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    device = subparsers.add_parser("device", help="emulated devices: fit their timing")
    actions = device.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser(
        "fit", help="fit the eMMC to published figures and write the tables in docs/devices.md"
    )
    action.add_argument("--device", type=Path, default=DEVICE, help="spec to start from and check")
    action.add_argument("--published", type=Path, default=PUBLISHED, help="figures to fit to")
    action.set_defaults(func=_run_fit)


def _run_fit(arguments: argparse.Namespace) -> int:
    spec, cells = load_device(arguments.device), load_published(arguments.published)
    for op in FITTED:
        print(f"[{op}]")
        for key, value in spec_values(fit(timing_of(spec, op), op, cells), op).items():
            print(f"{key} = {value}")
    wrong = mismatches(spec, cells)
    if wrong:
        print(f"\n{arguments.device} holds other values: {'; '.join(wrong)}")
        return 1
    PAGE.write_text(written_page(PAGE.read_text(encoding="utf-8"), spec, cells))
    print(f"\n{arguments.device} holds these values; tables written to {PAGE}")
    return 0
