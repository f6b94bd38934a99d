# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report of `steady tune` as a section of the page: the frontier, all candidates, the pick."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.pages.given_files import refuse_same_names
from steady_lab.pages.page_data import Download, data_link, script_json
from steady_lab.pages.tune_candidates import (
    Candidate,
    all_candidates,
    chosen_names,
    knobs_text,
)
from steady_lab.pages.tune_plot import tune_plot
from steady_lab.pages.tune_record import LATENCIES
from steady_lab.pages.tune_report import OPTION, TunePoint, TuneReport, read_tune_report
from steady_lab.pages.tune_words import (
    flaw_texts,
    found_text,
    goal_text,
    load_text,
    mark_text,
    quantile_name,
    runs_text,
    samples_needed,
    us,
    verdict_text,
)

ROWS_MAX = 40  # of more candidates, those that were not measured are folded away


@dataclass(frozen=True)
class TuneRow:
    """A line of the table: measured values, or why there are none."""

    name: str
    numbers: list[str]
    words: list[str]
    why: str
    is_pick: bool


@dataclass(frozen=True)
class TuneSection:
    """One report as the template shows it."""

    name: str
    sentences: list[str]
    flaws: list[str]
    plot_json: str
    numbers: list[str]
    words: list[str]
    rows: list[TuneRow]
    folded: list[TuneRow]
    brackets: str
    commands: list[str]
    is_applied: bool
    provenance: dict[str, str]
    specs: dict[str, str]
    download: Download


def read_tune_sections(paths: Sequence[Path]) -> list[TuneSection]:
    """Return a section per report; raises LabError for one that cannot be read or shown."""
    sections = [make_tune_section(path.stem, *read_tune_report(path)) for path in paths]
    refuse_same_names(OPTION, [section.name for section in sections], "reports")
    return sections


def make_tune_section(name: str, report: TuneReport, content: bytes) -> TuneSection:
    """Return a report's part of the page."""
    rows = [_row(report, candidate) for candidate in all_candidates(report)]
    is_long = len(rows) > ROWS_MAX
    without = [_measured_row(report, "none", report.none)] if report.none else []
    return TuneSection(
        name=name,
        sentences=[
            load_text(report),
            goal_text(report.goal),
            runs_text(report),
            found_text(report),
        ],
        flaws=flaw_texts(report),
        plot_json=script_json(tune_plot(report)),
        numbers=[*(head for head, _ in _quantiles(report)), *_other_numbers(report)],
        words=["limit", "mark"],
        rows=without + [row for row in rows if not (is_long and row.why)],
        folded=[row for row in rows if is_long and row.why],
        brackets=_brackets_text(report),
        commands=report.pick.commands if report.pick else [],
        is_applied=report.pick is not None and report.pick.is_applied,
        provenance=report.setup.provenance,
        specs=_specs(report),
        download=Download(f"{name}.json", data_link("application/json", content)),
    )


def _quantiles(report: TuneReport) -> list[tuple[str, float]]:
    """Return the columns of latencies: what all records have, and the tail."""
    shown = sorted({*LATENCIES.values(), report.goal.quantile_percent})
    return [(quantile_name(percent), percent) for percent in shown]


def _other_numbers(report: TuneReport) -> list[str]:
    tail = quantile_name(report.goal.quantile_percent)
    return ["max", f"{tail} from", "to", "I/Os", "enough", "MiB/s"]


def _row(report: TuneReport, candidate: Candidate) -> TuneRow:
    name = knobs_text(report, candidate.knobs)
    if candidate.point:
        return _measured_row(report, name, candidate.point)
    why = f"not measured: {candidate.why}" if candidate.why else "not measured"
    return TuneRow(name, [], [], why, is_pick=False)


def _measured_row(report: TuneReport, name: str, point: TunePoint) -> TuneRow:
    numbers = [_latency_text(report, point, percent) for _, percent in _quantiles(report)]
    numbers.append(us(point.rt.latency_ns["max"]))
    numbers += [us(ns) if ns is not None else "?" for ns in (point.tail_ns_min, point.tail_ns_max)]
    numbers += [str(point.rt.count), "yes" if point.has_interval else "no", f"{point.mib_s:.2f}"]
    words = ["" if point is report.none else verdict_text(point), mark_text(report, point)]
    is_pick = report.pick is not None and point.knobs == report.pick.knobs
    return TuneRow(name, numbers, words, "", is_pick)


def _latency_text(report: TuneReport, point: TunePoint, percent: float) -> str:
    """Return a quantile, in brackets if there were too few samples for it."""
    if percent == report.goal.quantile_percent:
        ns, is_enough = point.tail_ns, point.has_interval
    else:
        (name,) = (name for name, each in LATENCIES.items() if each == percent)
        ns = point.rt.latency_ns[name]
        is_enough = point.rt.count >= samples_needed(percent, report.interval_percent)
    return us(ns) if is_enough else f"({us(ns)})"


def _brackets_text(report: TuneReport) -> str:
    tail = quantile_name(report.goal.quantile_percent)
    needed = ", ".join(
        f"{name}: {samples_needed(percent, report.interval_percent):,}"
        for name, percent in _quantiles(report)
    )
    sides = " Below, above: no knob is higher, lower." if len(chosen_names(report)) > 1 else ""
    return (
        f"Times in µs. In brackets: too few I/Os for a {report.interval_percent:g} % interval of "
        f"that quantile (needed: {needed}); enough: for the {tail}.{sides}"
    )


def _specs(report: TuneReport) -> dict[str, str]:
    """Return device and workload; its variants are the candidates."""
    workload = {key: each for key, each in report.setup.workload.items() if key != "variant"}
    documents = {"Device": report.setup.device, "Workload": workload}
    return {
        name: json.dumps(document, indent=2, ensure_ascii=False)
        for name, document in documents.items()
    }
