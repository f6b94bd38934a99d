# SPDX-License-Identifier: MIT OR Apache-2.0
"""The report: one self-contained HTML page from all results, no network needed.

Everything on the page comes from build/results/*.json, from records of traces and from reports of
`steady tune`; text from them is escaped by the template engine, data for the script by
`script_json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from steady_lab.errors import LabError
from steady_lab.figures.checks import CheckResult, evaluate
from steady_lab.figures.results import FigureResult, read_result, write_atomically
from steady_lab.figures.rows import csv_text
from steady_lab.figures.spec import Figure, parse_figure
from steady_lab.figures.table import TextTable, summary_text, with_unit
from steady_lab.figures.workload import parse_workload
from steady_lab.pages.page_data import Download, data_link, script_json
from steady_lab.pages.plot import plot_data, variant_styles
from steady_lab.pages.published import Compared, compare
from steady_lab.pages.streams import result_tables
from steady_lab.pages.trace_section import TraceSection
from steady_lab.pages.tune_section import TuneSection


@dataclass(frozen=True)
class Section:
    """One figure as the template shows it."""

    figure: Figure
    meaning: str
    plot_json: str
    tables: list[TextTable]
    colours: dict[str, str]  # of table rows, by variant title
    checks: list[CheckResult]
    comparisons: list[Compared]
    provenance: dict[str, str]
    specs: dict[str, str]
    downloads: list[Download]
    command: str  # which makes it again
    is_of_lab: bool  # not of a board


def read_sections(results: Path) -> list[Section]:
    """Return one section per result file; raises LabError when there is none or one is bad."""
    sections = [make_section(read_result(path)) for path in sorted(results.glob("*.json"))]
    if not sections:
        raise LabError(f"no results in {results}: run `steady-lab run FIGURE` first")
    return sections


def write_page(
    sections: Sequence[Section],
    build: Path,
    traces: Sequence[TraceSection] = (),
    tunes: Sequence[TuneSection] = (),
) -> Path:
    """Write report/index.html below `build` and return its path; raises OSError."""
    page = build / "report" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, render(sections, traces=traces, tunes=tunes))
    return page


def render(
    sections: Sequence[Section],
    bare: bool = False,
    traces: Sequence[TraceSection] = (),
    tunes: Sequence[TuneSection] = (),
) -> str:
    """Return the page; `bare` leaves only the plots, for a picture of them."""
    assets = files("steady_lab.pages") / "assets"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steady_lab.pages", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_unit"] = with_unit
    return environment.get_template("page.html").render(
        sections=sections,
        traces=traces,
        tunes=tunes,
        bare=bare,
        style=(assets / "report.css").read_text(encoding="utf-8"),
        plotly=(files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"),
        script=(assets / "report.js").read_text(encoding="utf-8"),
    )


def make_section(result: FigureResult, command: str = "") -> Section:
    """Return a figure's part of the page; raises LabError when the result is inconsistent."""
    document, where = result.document, str(result.path)
    workload = parse_workload(document["workload"], where)
    figure = parse_figure(document["figure"], where, (result.path, result.path), workload)
    styles = variant_styles(figure)
    return Section(
        figure=figure,
        meaning=summary_text(figure, result.measured),
        plot_json=script_json(plot_data(figure, result)),
        tables=result_tables(figure, result.measured),
        colours={variant.title: styles[variant.name].colour for variant in workload.variants},
        checks=evaluate(figure.checks, result.measured),
        comparisons=compare(figure, result.measured),
        provenance=_provenance(document),
        specs={
            "Device": json.dumps(document["device"], indent=2, ensure_ascii=False),
            "Workload": json.dumps(document["workload"], indent=2, ensure_ascii=False),
        },
        downloads=_downloads(figure, result),
        is_of_lab=not command,
        command=command or f"steady-lab run {figure.name} && steady-lab report",
    )


def _provenance(document: dict[str, Any]) -> dict[str, str]:
    kernel = document["kernel"]
    tools = ", ".join(f"{name} {version}" for name, version in sorted(document["tool"].items()))
    return {
        "Kernel": kernel["release"],
        **{
            f"Kernel {what} (sha256)": kernel[key]
            for what, key in (
                ("configuration", "config_sha256"),
                ("modules, sources", "modules_sha256"),
            )
            if key in kernel
        },
        "Tools": tools,
        "Seed": str(document["seed"]),
        "Unmet requirements": "; ".join(map(str, document["unmet"])) or "none",
    }


def _downloads(figure: Figure, result: FigureResult) -> list[Download]:
    table = csv_text(result.measured.rows).encode()
    return [
        Download(f"{figure.name}.csv", data_link("text/csv", table)),
        Download(f"{figure.name}.json", data_link("application/json", result.path.read_bytes())),
    ]
