# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers that a paper derives from its spans, next to those of `steady model` (spec/spans-1.md).

A printed number is the same if the model's, rounded to as many decimals, is. Printed spans are
rounded, too, so a number may also follow from spans within that rounding. Any other difference
needs a reason.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.root.steady_command import steady_json
from steady_lab.toml_table import Table, load_toml

SPANS = EXPERIMENTS / "spans"
PUBLISHED_SCHEMA = "steadyio.published-model/1"
TIMES = ("submission_us", "block_us", "pre_us", "device_us", "post_us")
NUMBER = r"\d{1,9}(\.\d{1,6})?"

Prediction = dict[str, Any]


def _limit(name: str) -> Callable[[Prediction], float | None]:
    return lambda prediction: prediction["limits_mib_s"][name]


def _halved(name: str) -> Callable[[Prediction], float | None]:
    """One thread's speed, or its gain, with the device span halved."""

    def found(prediction: Prediction) -> float | None:
        (of_device,) = (one for one in prediction["halved"] if one["span"] == "device")
        value: float | None = of_device["single_thread"][name]
        return value

    return found


# Title and value of each quantity, as in docs/reference/steady-model.md.
QUANTITIES: dict[str, tuple[str, Callable[[Prediction], float | None]]] = {
    "single_thread_mib_s": ("single thread, MiB/s", _limit("single_thread")),
    "no_device_mib_s": ("no device time, MiB/s", _limit("no_device")),
    "one_core_mib_s": ("one core, MiB/s", _limit("one_core")),
    "many_cores_mib_s": ("many cores, MiB/s", _limit("many_cores")),
    "many_cores_no_device_mib_s": (
        "many cores, no device time, MiB/s",
        _limit("many_cores_no_device"),
    ),
    "software_percent": ("software, %", lambda prediction: prediction["software_percent"]),
    "device_halved_mib_s": ("device halved, MiB/s", _halved("mib_s")),
    "device_halved_gain_percent": ("device halved, gain in %", _halved("gain_percent")),
}


@dataclass(frozen=True)
class Published:
    """A printed number, or a range up to `to`, and why the model gives another one."""

    where: str
    spans: str
    quantity: str
    printed: str
    to: str
    reason: str


@dataclass(frozen=True)
class Compared:
    """The model's number with as many decimals, and the lowest and highest within rounding."""

    value: Published
    ours: str
    low: str
    high: str
    verdict: str


def comparison_markdown(name: str) -> str:
    """Return all that was published on the spans NAME next to the model's numbers.

    Raises LabError, also for a number that differs without a reason.
    """
    lines = [
        "| where | spans | quantity | printed | model | with spans rounded otherwise | verdict |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    compared = compare(SPANS / f"{name}.toml", SPANS / "published" / f"{name}.toml")
    return "\n".join(lines + [_line(one) for one in compared])


def compare(spans: Path, published: Path) -> list[Compared]:
    """Return each published value next to the model's; raises LabError."""
    table = Table(load_toml(published), str(published))
    table.choice("schema", (PUBLISHED_SCHEMA,))
    rounding_us = table.number("span_rounding_us", 0, 1000)
    values = [_read(value) for value in table.tables("value")]
    table.close()
    predictions = _predictions(load_toml(spans), rounding_us)
    for value in values:
        if value.spans not in predictions:
            raise LabError(f"{published}: spans = {value.spans!r}: not a name in {spans}")
    compared = [_compare(value, predictions[value.spans]) for value in values]
    for one in compared:
        if one.verdict == "differs" and not one.value.reason:
            raise LabError(
                f"{published}: {one.value.where}, {one.value.spans}: printed {one.value.printed}, "
                f"model {one.ours}: needs a `reason`"
            )
    return compared


def _read(table: Table) -> Published:
    value = Published(
        where=table.text("where"),
        spans=table.text("spans"),
        quantity=table.choice("quantity", tuple(QUANTITIES)),
        printed=table.text("printed", NUMBER, allowed='a decimal number such as "38.01"'),
        to=table.text("to", NUMBER, default=""),
        reason=table.text("reason", default=""),
    )
    table.close()
    if value.to and _decimals(value.to) != _decimals(value.printed):
        raise table.fail("to", "a number with as many decimals as `printed`")
    return value


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])


def _predictions(spans: dict[str, Any], rounding_us: float) -> dict[str, list[Prediction]]:
    """Return the model's results by name of the spans: as printed, then with each of them at an
    end of its rounding. Each quantity only rises or only falls with each span, so its extremes are
    among these.
    """
    names: list[str] = []
    entries: list[dict[str, Any]] = []
    for entry in spans["spans"]:
        times = [key for key in TIMES if key in entry]
        corners = itertools.product((-rounding_us, rounding_us), repeat=len(times))
        for shifts in [(0.0,) * len(times), *corners]:
            moved = {
                key: max(0.0, entry[key] + shift) for key, shift in zip(times, shifts, strict=True)
            }
            names.append(entry["name"])
            entries.append({**entry, **moved, "name": str(len(entries))})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "spans.json")
        file.write_text(json.dumps({**spans, "spans": entries}), encoding="utf-8")
        found = steady_json("model", str(file), "--json")["predictions"]
    results: dict[str, list[Prediction]] = {}
    for name, prediction in zip(names, found, strict=True):
        results.setdefault(name, []).append(prediction)
    return results


def _compare(value: Published, predictions: Sequence[Prediction]) -> Compared:
    _, of = QUANTITIES[value.quantity]
    found = [of(prediction) for prediction in predictions]
    if found[0] is None:
        raise LabError(f"{value.where}, {value.spans}: {value.quantity}: nothing limits it")
    numbers = [float("inf") if number is None else number for number in found]
    rounded = [f"{number:.{_decimals(value.printed)}f}" for number in numbers]
    ours, low, high = rounded[0], min(rounded, key=float), max(rounded, key=float)
    printed_low, printed_high = float(value.printed), float(value.to or value.printed)
    if printed_low <= float(ours) <= printed_high:
        verdict = "same"
    elif float(low) <= printed_high and printed_low <= float(high):
        verdict = "within span rounding"
    else:
        verdict = "differs"
    return Compared(value, ours, low, high, verdict)


def _line(compared: Compared) -> str:
    value, verdict = compared.value, compared.verdict
    if value.reason and verdict != "same":
        verdict += f": {value.reason}"
    printed = f"{value.printed}-{value.to}" if value.to else value.printed
    title, _ = QUANTITIES[value.quantity]
    return (
        f"| {value.where} | {value.spans} | {title} | {printed} | {compared.ours} "
        f"| {compared.low} to {compared.high} | {verdict} |"
    )
