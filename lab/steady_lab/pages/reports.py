# SPDX-License-Identifier: MIT OR Apache-2.0
"""Problems that people reported, as a table: what each scheduler gives, and whether k2 solves it.

experiments/reports.toml has per panel of the figure the link, what the program needs, and what to
do. A panel has two points: the program with real-time priority, and without, as by default. Whether
k2 solves the problem is computed from the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError, SpecError
from steady_lab.figures.metric import METRICS
from steady_lab.figures.rivals import DEFAULT
from steady_lab.figures.rows import Measurements
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable, format_number
from steady_lab.pages.published import panel_name
from steady_lab.paths import PROJECT
from steady_lab.toml_table import NAME_PATTERN, Point, Table, load_toml

REPORTS = PROJECT / "experiments" / "reports.toml"
SCHEMA = "steadyio.reports/1"
USUAL = "mq-deadline"
STATISTICS = ("p99_ms", "max_ms")
MS_MAX = 1e6
HELPS = 0.5  # in part: at most this share of the default's latency
SOLVED, IN_PART, NOT = "solved", "in part", "no"


@dataclass(frozen=True)
class Report:
    """One report: `statistic` of the real-time class must be at most `limit_ms`."""

    panel: str  # FIGURE-PANEL
    name: str
    link: str
    statistic: str
    limit_ms: float
    says: str  # after the verdict


def load_reports(path: Path = REPORTS) -> list[Report]:
    """Read all reports. Raises SpecError."""
    table = Table(load_toml(path), str(path))
    table.choice("schema", (SCHEMA,))
    found = [_report(item) for item in table.tables("report")]
    table.close()
    names = [report.panel for report in found]
    if len(set(names)) != len(names):
        raise SpecError(f"{path}: [[report]]: each panel once")
    return found


def _report(table: Table) -> Report:
    report = Report(
        panel=table.text("panel", NAME_PATTERN),
        name=table.text("name"),
        link=table.text("link", r"https://\S+", allowed="an https:// address"),
        statistic=table.choice("statistic", STATISTICS),
        limit_ms=table.number("limit_ms", 0, MS_MAX),
        says=table.text("says"),
    )
    table.close()
    return report


def verdict(report: Report, figure: Figure, measured: Measurements) -> str:
    """Return whether a variant of k2 keeps the limit, or at least halves the usual time."""
    metric, (point, default) = METRICS[f"rt.{report.statistic}"], figure.shown_points
    ours = [v.name for v in figure.workload.variants if v.name.startswith("k2")]
    best_ms = min(measured.value(name, point, metric) for name in ours)
    usual_ms = measured.value(USUAL, default, metric)
    if best_ms <= report.limit_ms < usual_ms:
        return SOLVED
    return IN_PART if best_ms <= HELPS * usual_ms else NOT


def reports_table(panels: Sequence[tuple[Figure, Measurements]]) -> TextTable:
    """Return one row per report. Raises LabError if reports and panels do not match."""
    reports = {report.panel: report for report in load_reports()}
    if reports.keys() != {figure.name for figure, _ in panels}:
        raise LabError(f"{REPORTS}: has not the panels of the figure")
    body = [_row(reports[figure.name], figure, measured) for figure, measured in panels]
    header = ["report", "what, and on which device", "needs", "default", USUAL, "bfq", "k2"]
    return TextTable(
        "Longest / p99 of the real-time program (ms), background (MiB/s)",
        [*header, "k2, declared", "does k2 solve it?"],
        body,
    )


def _row(report: Report, figure: Figure, measured: Measurements) -> list[str]:
    point, default = figure.shown_points
    declared = [v.name for v in figure.workload.variants if "declared" in v.name]
    shown = [(USUAL, default), *((name, point) for name in (USUAL, "bfq", DEFAULT, *declared))]
    cells = [_cell(measured, name, at) for name, at in shown]
    statistic = {"p99_ms": "p99", "max_ms": "longest"}[report.statistic]
    return [
        f"[{report.name}]({report.link})",
        f"{panel_name(figure)}; `{figure.device_file.stem}`",
        f"{statistic} {report.limit_ms:g}",
        *cells,
        *([] if declared else ["–"]),
        f"**{verdict(report, figure, measured)}**: {report.says}",
    ]


def _cell(measured: Measurements, variant: str, point: Point) -> str:
    longest, p99 = (
        format_number(measured.value(variant, point, METRICS[f"rt.{statistic}"]))
        for statistic in ("max_ms", "p99_ms")
    )
    background = measured.found(variant, point, METRICS["bg.mib_s"])
    return f"{longest} / {p99}, {'–' if background is None else format_number(background)}"


def verdict_counts(panels: Sequence[tuple[Figure, Measurements]]) -> TextTable:
    """Return how many reports have which verdict."""
    reports = {report.panel: report for report in load_reports()}
    found = [verdict(reports[figure.name], figure, measured) for figure, measured in panels]
    body = [[word, str(found.count(word))] for word in (SOLVED, IN_PART, NOT)]
    return TextTable("Verdicts", ["does k2 solve it?", "reports"], body)
