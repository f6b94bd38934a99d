# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of the emulated cards: how close their fits are, and the keys of a device spec."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steady_lab.devices.fit import (
    FITTED,
    Cell,
    Figure,
    compare,
    fit,
    headline,
    rms,
    timing_of,
)
from steady_lab.devices.kind import Number
from steady_lab.devices.spec import DeviceSpec
from steady_lab.devices.transfer_fit import Transfer, cards_of, transfer_us
from steady_lab.figures.table import TextTable
from steady_lab.paths import PROJECT

RECORD = PROJECT / "docs/results/records/device-fit.tables.csv"
PART = "cards"


def fit_tables(spec: DeviceSpec, cells: list[Cell], transfers: list[Transfer]) -> list[TextTable]:
    """All tables of the cards, for RECORD."""
    figures = {
        op: compare(timing_of(spec, op), [cell for cell in cells if cell.op == op]) for op in FITTED
    }
    return [
        errors_table(figures),
        *(values_table(op, found) for op, found in figures.items()),
        choices_table(spec, cells),
        transfers_table(transfers),
    ]


def errors_table(figures: dict[str, list[Figure]]) -> TextTable:
    """How far the model is from the published values of a direction."""
    body = []
    for op, found in figures.items():
        worst = max((f for f in found if not f.cell.left_out), key=lambda f: abs(f.error))
        body.append([f"{op}s", str(len(found)), f"{rms(found):.1%}", f"{worst.error:+.0%}"])
    header = ["", "published values", "root mean square error", "largest error"]
    return TextTable("Errors of the fit", header, body)


def values_table(op: str, figures: list[Figure]) -> TextTable:
    """Every published value of a direction next to the model's."""
    header = ["published in", "pattern", "real-time KiB", "background KiB", "quantity"]
    header += ["published", "model", "error"]
    return TextTable(f"Published values of {op}s", header, list(map(_row, figures)))


def choices_table(spec: DeviceSpec, cells: list[Cell]) -> TextTable:
    """How much each term and each assumption matters: the errors of other fits."""
    share = spec.values["slow_length_us"] / spec.values["slow_period_us"]
    choices: list[tuple[str, str, dict[str, Any]]] = [
        ("as in the spec", "", {}),
        ("without jump", "jump", {}),
        ("without slow episodes", "slow", {}),
        ("without write pauses", "pause", {}),
        *((f"slow for {s:.0%} of the time", "", {"slow_share": s}) for s in (0.03, 0.08)),
        *((f"a pause per {kib} KiB", "", {"pause_kib": kib}) for kib in (2560, 6144)),
    ]
    header = [
        f"model (spec: slow for {share:.0%} of the time, a pause per "
        f"{spec.values['write_pause_kib']} KiB)",
        *("reads, error", "writes, error", "K2 / split", "max_sectors_kb / split"),
    ]
    body = []
    for name, without, changed in choices:
        fits = {
            op: fit(replace(timing_of(spec, op), **changed), op, cells, without) for op in FITTED
        }
        errors = [
            f"{rms(compare(fits[op], [c for c in cells if c.op == op])):.1%}" for op in FITTED
        ]
        ratios = [f"{ratio:.2f}" for ratio in headline(fits["read"])]
        body.append([name, *errors, *ratios])
    return TextTable("Choices of the model", header, body)


def transfers_table(transfers: list[Transfer]) -> TextTable:
    """Every published transfer time next to the card's."""
    cards = {card.name: card for card in cards_of(transfers)}
    body = []
    for item in transfers:
        modelled_us = transfer_us(cards[item.device], item.op, item.kib)
        times = [f"{item.us:g}", f"{modelled_us:g}", f"{modelled_us / item.us - 1:+.1%}"]
        what = [item.where, f"`{item.device}`", f"{item.access} {item.op}", str(item.kib)]
        body.append([*what, *times, item.left_out])
    header = ["published in", "card", "operation", "KiB", "published us", "model us", "error"]
    return TextTable("Published transfer times", [*header, "not fitted"], body)


def keys_table(kind: str, numbers: tuple[Number, ...]) -> TextTable:
    """Every number of a kind's specs with unit, range and default."""
    body = []
    for number in numbers:
        high = "2^64 - 1" if number.high == 2**64 - 1 else f"{number.high}"
        default = "required" if number.default is None else f"{number.default}"
        span = f"{number.low} .. {high}"
        body.append([number.name, number.unit or "-", span, default, number.meaning])
    header = ["key", "unit", "range", "default", "meaning"]
    return TextTable(f"Numbers of a spec of kind {kind}", header, body)


def _row(figure: Figure) -> list[str]:
    cell = figure.cell
    rt = f"{cell.rt_kib}" if cell.rt_pieces == 1 else (
        f"{cell.rt_pieces} x {cell.rt_kib // cell.rt_pieces}"
    )  # fmt: skip
    unit = {"total_mib_s": "throughput, MiB/s", "rt_p99_ms": "p99, ms"}[figure.quantity]
    mark = " (not fitted)" if cell.left_out else " (*)" if cell.note else ""
    numbers = (f"{figure.published:.2f}", f"{figure.modelled:.2f}", f"{figure.error:+.0%}")
    return [f"{cell.where}{mark}", cell.pattern, rt, f"{cell.bg_kib}", unit, *numbers]
