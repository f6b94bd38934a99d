# SPDX-License-Identifier: MIT OR Apache-2.0
"""The computed parts of docs/devices.md: the fits of the cards, and the keys of a device spec."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steady_lab.devices.emmc import NUMBERS as EMMC_NUMBERS
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
from steady_lab.devices.nvme import NUMBERS as NVME_NUMBERS
from steady_lab.devices.spec import DeviceSpec
from steady_lab.devices.transfer_fit import Transfer, cards_of, transfer_us
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import PROJECT

PAGE = PROJECT / "docs/devices.md"
COMMAND = "steady-lab device fit"


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


def transfers_markdown(transfers: list[Transfer]) -> str:
    """Every published transfer time next to the card's."""
    cards = {card.name: card for card in cards_of(transfers)}
    lines = [
        "| published in | card | operation | KiB | published us | model us | error | not fitted |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for item in transfers:
        modelled_us = transfer_us(cards[item.device], item.op, item.kib)
        lines.append(
            f"| {item.where} | `{item.device}` | {item.access} {item.op} "
            f"| {item.kib} | {item.us:g} | {modelled_us:g} "
            f"| {modelled_us / item.us - 1:+.1%} | {item.left_out} |"
        )
    return "\n".join([*lines, ""])


def keys_markdown(numbers: tuple[Number, ...]) -> str:
    """Every number of a kind's specs with unit, range and default."""
    lines = ["| key | unit | range | default | meaning |", "| --- | --- | --- | --- | --- |"]
    for number in numbers:
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


def written_page(text: str, spec: DeviceSpec, cells: list[Cell], transfers: list[Transfer]) -> str:
    """The page with its computed parts rewritten. Raises LabError if a marker is missing."""
    text = with_part(text, "transfers", COMMAND, transfers_markdown(transfers))
    text = with_part(text, "fit", COMMAND, fit_markdown(spec, cells))
    text = with_part(text, "choices", COMMAND, choices_markdown(spec, cells))
    text = with_part(text, "keys", COMMAND, keys_markdown(EMMC_NUMBERS))
    return with_part(text, "nvme-keys", COMMAND, keys_markdown(NVME_NUMBERS))
