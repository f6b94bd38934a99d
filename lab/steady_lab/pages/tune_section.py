# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report of `steady tune` as a section of the page: the plot, all measurements, the pick."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.pages.given_files import refuse_same_names
from steady_lab.pages.page_data import Download, data_link, script_json
from steady_lab.pages.trace_words import size_text
from steady_lab.pages.tune_plot import tune_plot
from steady_lab.pages.tune_report import (
    OPTION,
    TunePoint,
    TuneReport,
    read_tune_report,
    samples_needed,
    us,
)

QUANTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}


@dataclass(frozen=True)
class TuneRow:
    """A measurement as a line of the table."""

    name: str
    numbers: list[str]
    words: list[str]
    is_pick: bool


@dataclass(frozen=True)
class TuneSection:
    """One report as the template shows it."""

    name: str
    sentences: list[str]
    flaws: list[str]
    plot_json: str
    numbers: list[str]
    rows: list[TuneRow]
    brackets: str
    commands: list[str]
    is_applied: bool
    specs: dict[str, str]
    download: Download


def read_tune_sections(paths: Sequence[Path]) -> list[TuneSection]:
    """Return a section per report; raises LabError for one that cannot be read or shown."""
    sections = [make_tune_section(path.stem, *read_tune_report(path)) for path in paths]
    refuse_same_names(OPTION, [section.name for section in sections], "reports")
    return sections


def make_tune_section(name: str, report: TuneReport, content: bytes) -> TuneSection:
    """Return a report's part of the page."""
    pick = report.raw["pick"]
    record = {key: value for key, value in report.raw["record"].items() if key != "results"}
    return TuneSection(
        name=name,
        sentences=[_load_text(report), _goal_text(report), _found_text(report)],
        flaws=_flaw_texts(report),
        plot_json=script_json(tune_plot(report)),
        numbers=[head for head, _ in _columns(report)] + ["from", "to", "max", "I/Os", "MiB/s"],
        rows=[_row(report, point) for point in report.measurements],
        brackets=_brackets_text(report),
        commands=pick["commands"] if pick else [],
        is_applied=bool(pick and pick["is_applied"]),
        specs={"Kernel, device and workload": json.dumps(record, indent=2, ensure_ascii=False)},
        download=Download(f"{name}.json", data_link("application/json", content)),
    )


def _columns(report: TuneReport) -> list[tuple[str, float]]:
    """Return the quantiles of the table, the tail last."""
    others = [percent for percent in QUANTILES.values() if percent != report.quantile_percent]
    return [(f"p{percent:g}", percent) for percent in (*others, report.quantile_percent)]


def _row(report: TuneReport, point: TunePoint) -> TuneRow:
    latencies = {percent: point.latency_ns[name] for name, percent in QUANTILES.items()}
    latencies[report.quantile_percent] = point.tail_ns
    numbers = []
    for _, percent in _columns(report):
        is_enough = point.samples >= samples_needed(percent, report.interval_percent)
        numbers.append(us(latencies[percent]) if is_enough else f"({us(latencies[percent])})")
    numbers += [us(ns) if ns is not None else "?" for ns in (point.tail_ns_min, point.tail_ns_max)]
    numbers += [us(point.latency_ns["max"]), str(point.samples), f"{point.mib_s:.2f}"]
    is_none = point is report.none
    words = ["" if is_none else point.verdict, ", ".join(point.marks)]
    name = "none" if is_none else report.knobs_text(point.knobs)
    return TuneRow(name, numbers, words, "pick" in point.marks)


def _load_text(report: TuneReport) -> str:
    record: dict[str, Any] = report.raw["record"]
    device = record["device"]
    facts = [*([device["model"]] if device["model"] else []), size_text(device["size_bytes"])]
    classes = record["results"][0]["classes"]
    titles = {"rt": "real-time", "bg": "background"}
    jobs = [
        f"{title} {classes[name]['op']}"
        + (f" of {classes[name]['bs_kib']} KiB" if classes[name]["bs_kib"] else "")
        for name, title in titles.items()
        if name in classes
    ]
    fixed = {name: values[0] for name, values in report.raw["knobs"].items() if len(values) == 1}
    shared = [f"{name}={value}" for name, value in (fixed | report.raw["with"]).items()]
    return (
        f"Device {device['name']} ({', '.join(facts)}). "
        f"Workload {record['spec']['name']}: {' next to '.join(jobs)}."
    ) + (f" The same in all measurements: {', '.join(shared)}." if shared else "")


def _goal_text(report: TuneReport) -> str:
    """Return the goal, with the objective's name in the paper on K2 and SSDs."""
    if report.tail_ns_limit is not None:
        name = "O1"
        text = f"the most throughput, with a {report.tail} of at most {us(report.tail_ns_limit)} µs"
    else:
        name = "O2"
        text = f"the shortest {report.tail}, with at least {report.mib_s_limit:.2f} MiB/s"
    share = report.percent_of_none
    of_none = "" if share is None else f": {share:g} % of that without a scheduler"
    return f"Wanted: {text}{of_none} (objective {name})."


def _found_text(report: TuneReport) -> str:
    measured = f"{len(report.points)} of {report.raw['candidates']} candidates were measured."
    ringed = next((point for point in report.points if point.is_ringed), None)
    if ringed is None:
        return f"{measured} No pick: none keeps the limit."
    values = (
        f"{report.knobs_text(ringed.knobs)}, with a {report.tail} of {us(ringed.tail_ns)} µs and "
        f"{ringed.mib_s:.2f} MiB/s"
    )
    if "pick" not in ringed.marks:
        return f"{measured} No pick: none keeps the limit; {values} comes nearest."
    uncertain = ringed.is_certain is False
    return f"{measured} Picked: {values}." + (
        " Uncertain: its interval and the limit's overlap." if uncertain else ""
    )


def _flaw_texts(report: TuneReport) -> list[str]:
    """Return what weakens the result."""
    flaws = []
    short = sum(not point.has_interval for point in report.measurements)
    if short:
        flaws.append(f"Too few samples for an interval of the {report.tail}: {short} measurements.")
    errors = sum(point.errors for point in report.measurements)
    flaws += [f"{errors} I/Os failed."] if errors else []
    for found in report.raw["contradictions"]:
        what = "a longer tail" if found["quantity"] == "tail" else "more throughput"
        lower, upper = report.knobs_text(found["lower"]), report.knobs_text(found["upper"])
        flaws.append(f"Not monotonic: {lower} has {what} than {upper}.")
    return flaws


def _brackets_text(report: TuneReport) -> str:
    needed = ", ".join(
        f"{name}: {samples_needed(percent, report.interval_percent):,}"
        for name, percent in _columns(report)
    )
    return (
        f"Times in µs; from, to: {report.interval_percent:g} % interval of the {report.tail}. In "
        f"brackets: too few I/Os for such an interval (needed: {needed})."
    )
