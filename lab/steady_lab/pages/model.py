# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady model` on pages: a paper's numbers next to the model's."""

from __future__ import annotations

from typing import Any

from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.root.steady_command import steady_json

SPANS = EXPERIMENTS / "spans"
# As in docs/reference/steady-model.md.
QUANTITIES = {
    "single_thread_mib_s": "single thread, MiB/s",
    "no_device_mib_s": "no device time, MiB/s",
    "one_core_mib_s": "one core, MiB/s",
    "many_cores_mib_s": "many cores, MiB/s",
    "many_cores_no_device_mib_s": "many cores, no device time, MiB/s",
    "software_percent": "software, %",
    "device_halved_mib_s": "device halved, MiB/s",
    "device_halved_gain_percent": "device halved, gain in %",
}


def comparison_markdown(name: str) -> str:
    """Return all that was published on the spans NAME next to the model's numbers.

    Raises LabError, also for a number that differs without a reason.
    """
    spans, published = SPANS / f"{name}.toml", SPANS / "published" / f"{name}.toml"
    found = steady_json("model", str(spans), "--compare", str(published), "--json")
    lines = [
        "| where | spans | quantity | printed | model | with spans rounded otherwise | verdict |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
        *map(_line, found["values"]),
    ]
    return "\n".join(lines)


def _line(value: dict[str, Any]) -> str:
    low, high = value["possible"]
    verdict = value["verdict"].replace("_", " ")
    if value["reason"] and verdict != "same":
        verdict += f": {value['reason']}"
    return (
        f"| {value['where']} | {value['spans']} | {QUANTITIES[value['quantity']]} "
        f"| {value['printed']} | {value['ours_rounded']} | {low} to {high} | {verdict} |"
    )
