# SPDX-License-Identifier: MIT OR Apache-2.0
"""A record of `steady trace` as a section of the report: bars, the worst I/Os, maps, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.table import TextTable
from steady_lab.pages.given_files import read_given, refuse_same_names
from steady_lab.pages.page_data import Download, data_link, script_json
from steady_lab.pages.trace_maps import TraceMaps, refuse_other_trace, trace_maps
from steady_lab.pages.trace_plot import SPANS, shown_groups, shown_worst, spans_plot, worst_plot
from steady_lab.pages.trace_rows import OPTION, TracedIo, read_traced_ios
from steady_lab.pages.trace_words import cause_texts, group_label, time_text, worst_label

SCHEMA = "steadyio.trace/1"
STATISTICS = {"mean": "mean", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
NS_PER_US = 1000


@dataclass(frozen=True)
class TraceSection:
    """One record as the template shows it."""

    name: str
    summary: str
    flaws: list[str]
    missing: list[str]
    spans_json: str
    hidden_groups: int
    worst_json: str | None
    maps: TraceMaps
    tables: list[TextTable]  # columns called "span" and "why" hold words
    provenance: dict[str, str]
    download: Download


def read_trace_sections(paths: Sequence[Path], rows: Sequence[Path] = ()) -> list[TraceSection]:
    """Return a section per record, with the maps of the file of rows that has its name.

    Raises LabError for a file that cannot be read or shown.
    """
    rows_of = {path.stem: path for path in rows}
    refuse_same_names(OPTION, [path.stem for path in rows], "files")
    names = [path.stem for path in paths]
    for name, path in rows_of.items():
        if name not in names:
            raise LabError(f"{OPTION} {path}: no record is called {name}: give it with --trace")
    sections = [_read(path, rows_of.get(path.stem)) for path in paths]
    refuse_same_names("--trace", names, "records")
    return sections


def _read(path: Path, rows: Path | None) -> TraceSection:
    document, content = read_given("--trace", path, SCHEMA, "steady trace --json FILE…")
    ios = read_traced_ios(rows) if rows else []
    try:
        if rows:
            refuse_other_trace(rows, ios, shown_worst(document))
        return make_trace_section(path.stem, document, content, ios)
    except (KeyError, TypeError) as error:
        raise LabError(f"--trace {path}: not a complete {SCHEMA} record: {error}") from error


def make_trace_section(
    name: str, document: dict[str, Any], content: bytes, ios: Sequence[TracedIo]
) -> TraceSection:
    """Return a record's part of the page; raises KeyError or TypeError without it."""
    groups, worst = shown_groups(document), shown_worst(document)
    all_groups = document["ios"] + document["requests"]
    tables = [_totals_table(all_groups + document["flushes_and_discards"]), _spans_table(groups)]
    tables += [_worst_table(worst)] if worst else []
    return TraceSection(
        name=name,
        summary=_summary(document),
        flaws=_flaws(document["account"]),
        missing=[f"{each['event']}: {each['consequence']}" for each in document["missing"]],
        spans_json=script_json(spans_plot(groups)),
        hidden_groups=len(all_groups) - len(groups),
        worst_json=script_json(worst_plot(worst)) if worst else None,
        maps=trace_maps(ios, worst),
        tables=[table for table in tables if table.body],
        provenance=_provenance(document),
        download=Download(f"{name}.json", data_link("application/json", content)),
    )


def _summary(document: dict[str, Any]) -> str:
    ios = sum(group["count"] for group in document["ios"])
    requests = sum(group["count"] for group in document["requests"])
    account = document["account"]
    return (
        f"{ios} I/Os of system calls, and {requests} requests outside system calls; "
        f"{account['matched']} requests matched from {account['events']} events."
    )


def _flaws(account: dict[str, Any]) -> list[str]:
    """Return what makes the trace incomplete."""
    counts = {
        "events were lost": account["events_lost"],
        "requests hit by lost events": account["hit_by_loss"],
        "requests unmatched": account["unmatched"],
        "parse errors": account["unread"]["count"],
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _totals_table(groups: list[dict[str, Any]]) -> TextTable:
    header = ["", "count", "at once", *STATISTICS.values(), "software"]
    body = [
        [group_label(group), str(group["count"]), str(group["at_once_max"])]
        + _times_us(group["total"])
        + [f"{group['software_percent']:.1f} %"]
        for group in groups
    ]
    return TextTable("Whole times in µs; software is all but the device", header, body)


def _spans_table(groups: list[dict[str, Any]]) -> TextTable:
    header = ["", "span", "share", *STATISTICS.values()]
    body = [
        [group_label(group), SPANS[span["span"]][0], f"{span['share_percent']:.1f} %"]
        + _times_us(span)
        for group in groups
        for span in group["spans"]
    ]
    return TextTable("Spans in µs, of the groups in the plot", header, body)


def _worst_table(worst: list[dict[str, Any]]) -> TextTable:
    header = ["", "whole", *SPANS, "requests", "why"]
    body = [
        [f"{n}. {worst_label(each)}", time_text(each["total_ns"])]
        + [_span_text(each, name) for name in SPANS]
        + [str(each["requests"]), "; ".join(cause_texts(each))]
        for n, each in enumerate(worst, 1)
    ]
    return TextTable("The longest", header, body)


def _span_text(worst: dict[str, Any], name: str) -> str:
    """Return a span's time; a request outside system calls has no submission."""
    is_unknown = name == "submission" and worst["call"] is None
    return "–" if is_unknown else time_text(worst["spans"][f"{name}_ns"])


def _times_us(figures: dict[str, Any]) -> list[str]:
    return [f"{figures[f'{name}_ns'] / NS_PER_US:.1f}" for name in STATISTICS]


def _provenance(document: dict[str, Any]) -> dict[str, str]:
    kernel = document["kernel"]
    account = document["account"]
    return {
        "Kernel": f"{kernel['release']} {kernel['version']}" if kernel else "traced elsewhere",
        "Tool": f"steady {document['tool']['steady']}",
        "Processes": document["scope"]["processes"],
        "At the edges of the trace, incomplete": f"{account['at_the_edges']} requests, "
        f"{account['ios_incomplete']} I/Os",
        "Calls without a request": str(account["calls_without_request"]),
    }
