# SPDX-License-Identifier: MIT OR Apache-2.0
"""The computed parts of Markdown pages: blocks `<!-- KIND:NAME -->` ... `<!-- /KIND -->`.

Everything between such markers is generated from a figure's spec and its CSV; the text around them
is written by hand. README.md, docs/results/s1.md and the guides are pages with blocks.

    figure:NAME     one figure or panel: sweep, detail and sentences.
    sweep:NAME      one figure or panel: the plotted metric by point.
    panels:NAME     all panels of a figure: p50, p99, p99.9, maximum and count.
    costs:NAME      all panels: p99 and background throughput.
    verdicts:NAME,...  per figure: how many claims hold, and how many published values are near.
    claims:NAME     all panels: the checks, with the paper's findings.
    published:NAME  all panels: published values, ratio, and the reason where it is far from 1.
    recordings:NAME  all panels of a recording: how long calls waited, and published values.
    calls:NAME      all panels of a recording: how long calls waited.
    threads:NAME    all panels of threads on a host: speeds next to the model's, and latencies.
    headline:NAME   a figure's short table: latency and background of the variants in `headline`.
    streams:NAME    all panels of a figure with [alone]: per point, what every scheduler gives both.
    rivals:NAME     all panels: where another variant is better than k2's default, and why.
    matrix:NAME     all panels by load: p99 and background of k2 and of the usual scheduler.
    matrix-counts:NAME  in how many of these cells k2 is on the frontier.
    matrix-off:NAME  the cells in which it is not, and why.
    reports:NAME    all panels: reports of problems, what each scheduler gives, and a verdict.
    reports-count:NAME  how many reports have which verdict.
    rivals-count:NAME,...  per figure: at how many points another variant is better, and in what.
    recorded:FILE.TABLE  records/FILE.csv: one of its tables (recorded_tables.py).
    model:NAME      experiments/spans/NAME.toml: published numbers next to those of `steady model`.
    spans:NAME      experiments/traces/NAME.toml: spans of a real kernel, and published ones.
    spans-findings:NAME  the same: the paper's statements and its Table 2 only.
    spans-tables:NAME  the same: speeds next to the model's, the spread, and the longest.
    papers:counts   experiments/papers: verdicts by paper; papers:elements, lists and tables of them
    share:throughput  what the device model says on the throughput that splitting leaves.

NAME[A,B] has only the variants A and B. `<!-- KIND:NAME kernel:6.12 -->` takes the results of that
release instead of the default one's. `steady-lab results --print KIND:NAME` prints any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.checks import evaluate
from steady_lab.figures.metric import LATENCIES, Metric
from steady_lab.figures.rows import Measurements, point_text, read_csv
from steady_lab.figures.spec import Figure, load_figure, load_figures
from steady_lab.figures.table import (
    TextTable,
    detail_table,
    format_number,
    summary_text,
    sweep_table,
)
from steady_lab.kernels.source import RELEASES, release_folder
from steady_lab.pages.matrix import matrix_table, off_frontier_table, summary_table
from steady_lab.pages.model import comparison_markdown
from steady_lab.pages.papers import papers_markdown
from steady_lab.pages.published import claims_markdown, published_markdown
from steady_lab.pages.recorded_tables import recorded_markdown
from steady_lab.pages.recordings import calls_table, published_table
from steady_lab.pages.records import read_record
from steady_lab.pages.reports import reports_table, verdict_counts
from steady_lab.pages.rivals import rivals_count_table, rivals_markdown
from steady_lab.pages.spans import (
    spans_findings_markdown,
    spans_markdown,
    spans_tables_markdown,
)
from steady_lab.pages.streams import headline_table, result_tables, stream_tables
from steady_lab.pages.threads import threads_markdown
from steady_lab.pages.throughput_share import share_markdown
from steady_lab.pages.verdicts import Panels, verdicts_table
from steady_lab.toml_table import Point

WITHOUT_FIGURE = (
    *("model", "papers", "recorded", "share"),
    *("spans", "spans-findings", "spans-tables"),
)
PANEL_STATISTICS = ("p50", "p99", "p999", "max")
COSTS = (Metric("rt", "p99"), Metric("bg", "mib_s"))
CHOSEN = re.compile(r"(?P<name>[^\[]*)(?:\[(?P<variants>[^\]]*)\])?")


def fill_blocks(text: str, results: Path) -> str:
    """Return `text` with every block between markers generated again from the CSV in `results`.

    Raises LabError when there is no block, so a lost marker cannot go unnoticed.
    """
    if not BLOCK.search(text):
        raise LabError("no block <!-- figure:NAME --> ... <!-- /figure --> found")

    def fill(match: re.Match[str]) -> str:
        return f"{match['open']}{_made(match, results)}\n{match['close']}"

    return BLOCK.sub(fill, text)


def figures_on(text: str, release: str) -> list[str]:
    """Return the names of figures that the blocks of a page use on a release, each once."""
    blocks = [m for m in BLOCK.finditer(text) if m["kind"] not in WITHOUT_FIGURE]
    of_release = [m["name"] for m in blocks if (m["kernel"] or RELEASES[0]) == release]
    names = [name for found in of_release for name in re.sub(r"\[.*\]", "", found).split(",")]
    return list(dict.fromkeys(names))


def print_block(wanted: str, results: Path) -> str:
    """Return the content of a block KIND:NAME, or KIND:NAME kernel:RELEASE; raises LabError."""
    match = BLOCK.fullmatch(f"<!-- {wanted} -->\n<!-- /{wanted.partition(':')[0]} -->")
    if match is None:
        raise LabError(f"{wanted}: no block KIND:NAME (a KIND is one of {', '.join(KINDS)})")
    return _made(match, results)


def _made(match: re.Match[str], results: Path) -> str:
    folder = release_folder(results.parent, match["kernel"] or RELEASES[0]) / results.name
    return KINDS[match["kind"]](match["name"], folder).rstrip()


def figures_in(name: str) -> list[Figure]:
    """Return what NAME or NAME[VARIANT,...] means; raises LabError for an unknown variant."""
    match = CHOSEN.fullmatch(name)
    assert match is not None
    figures = load_figures(match["name"])
    if match["variants"] is None:
        return figures
    return [_only(figure, match["variants"].split(",")) for figure in figures]


def _only(figure: Figure, names: list[str]) -> Figure:
    found = {variant.name: variant for variant in figure.workload.variants}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise LabError(f"{figure.name}: has no variant {unknown[0]} (it has {', '.join(found)})")
    return replace(
        figure, workload=replace(figure.workload, variants=tuple(found[name] for name in names))
    )


def measured_in(figure: Figure, results: Path) -> Measurements:
    """Read a figure's CSV; raises ResultError."""
    return read_csv(results / f"{figure.name}.csv")


def _figure(name: str, results: Path) -> str:
    figure = load_figure(name)
    measured = measured_in(figure, results)
    parts = [
        *(table.markdown() for table in result_tables(figure, measured)),
        summary_text(figure, measured),
    ]
    return "\n\n".join(parts)


def _panels(name: str, results: Path) -> str:
    return "\n\n".join(
        _panel(figure, measured_in(figure, results)) for figure in load_figures(name)
    )


def _panel(figure: Figure, measured: Measurements) -> str:
    """Return one table with all latencies in every cell, and one with throughputs."""
    points = figure.shown_points

    def cell(variant: str, point: str | float | None) -> str:
        row = measured.row(variant, point, "rt")
        return " / ".join(format_number(row.value(Metric("rt", s))) for s in PANEL_STATISTICS)

    counts = [
        {measured.row(v.name, p, "rt").count for p in points} for v in figure.workload.variants
    ]
    statistics = " / ".join(LATENCIES[name] for name in PANEL_STATISTICS)
    table = TextTable(
        f"{figure.plot.x_label}: real-time {statistics} (ms)",
        ["", *(point_text(point) or "-" for point in points), "count"],
        [
            [v.title, *(cell(v.name, p) for p in points), ", ".join(map(str, sorted(count)))]
            for v, count in zip(figure.workload.variants, counts, strict=True)
        ],
    )
    throughput = detail_table(figure, measured).markdown()
    return f"**{figure.title}**\n\n{table.markdown()}\n\n{throughput}"


def _sweep(name: str, results: Path) -> str:
    (figure,) = figures_in(name)
    return sweep_table(figure, measured_in(figure, results)).markdown()


def _costs(name: str, results: Path) -> str:
    return "\n\n".join(_cost(figure, measured_in(figure, results)) for figure in figures_in(name))


def _cost(figure: Figure, measured: Measurements) -> str:
    """Return p99 / background throughput; the longer axis goes down."""
    points, variants = figure.shown_points, figure.workload.variants
    cells = [[_cost_cell(measured, v.name, p) for p in points] for v in variants]
    heads, rows = [point_text(point) or "-" for point in points], [v.title for v in variants]
    if len(points) > len(variants):
        heads, rows, cells = rows, heads, [list(line) for line in zip(*cells, strict=True)]
    return TextTable(
        f"**{figure.title}**: p99 (ms) / background (MiB/s), by {_lower(figure.plot.x_label)}",
        ["", *heads],
        [[row, *line] for row, line in zip(rows, cells, strict=True)],
    ).markdown()


def _cost_cell(measured: Measurements, variant: str, point: Point) -> str:
    found = [measured.found(variant, point, metric) for metric in COSTS]
    return " / ".join("–" if value is None else format_number(value) for value in found)


def _lower(label: str) -> str:
    return label[0].lower() + label[1:]


def _verdicts(name: str, results: Path) -> str:
    found: list[tuple[str, Panels]] = [
        (one, [(figure, measured_in(figure, results)) for figure in load_figures(one)])
        for one in name.split(",")
    ]
    return verdicts_table(found).markdown()


def _claims(name: str, results: Path) -> str:
    return claims_markdown(
        [
            (figure, evaluate(figure.checks, measured_in(figure, results)))
            for figure in load_figures(name)
        ]
    )


def _published(name: str, results: Path) -> str:
    return published_markdown(
        [(figure, measured_in(figure, results)) for figure in load_figures(name)]
    )


def _recordings(name: str, results: Path) -> str:
    parts = []
    for figure in load_figures(name):
        recorded = read_record(figure, results)
        parts.append(calls_table(figure, recorded))
        if figure.published:
            parts.append(published_table(figure, recorded))
    return "\n\n".join(parts)


def _calls(name: str, results: Path) -> str:
    return "\n\n".join(
        calls_table(figure, read_record(figure, results)) for figure in figures_in(name)
    )


def _threads(name: str, results: Path) -> str:
    return "\n\n".join(
        threads_markdown(figure, measured_in(figure, results)) for figure in load_figures(name)
    )


def _streams(name: str, results: Path) -> str:
    found = [(figure, measured_in(figure, results)) for figure in load_figures(name)]
    tables = [table for figure, measured in found for table in stream_tables(figure, measured)]
    return "\n\n".join(table.markdown() for table in tables)


def _headline(name: str, results: Path) -> str:
    figure = load_figure(name)
    return headline_table(figure, measured_in(figure, results)).markdown()


def _reports(name: str, results: Path) -> str:
    return reports_table(_measured_panels(name, results)).markdown()


def _reports_count(name: str, results: Path) -> str:
    return verdict_counts(_measured_panels(name, results)).markdown()


def _matrix(name: str, results: Path) -> str:
    return matrix_table(_measured_panels(name, results)).markdown()


def _matrix_counts(name: str, results: Path) -> str:
    return summary_table(_measured_panels(name, results)).markdown()


def _matrix_off(name: str, results: Path) -> str:
    return off_frontier_table(_measured_panels(name, results)).markdown()


def _measured_panels(name: str, results: Path) -> Panels:
    return [(figure, measured_in(figure, results)) for figure in load_figures(name)]


def _rivals(name: str, results: Path) -> str:
    return rivals_markdown(
        [(figure, measured_in(figure, results)) for figure in load_figures(name)]
    )


def _rivals_count(name: str, results: Path) -> str:
    found = [
        (one, [(figure, measured_in(figure, results)) for figure in load_figures(one)])
        for one in name.split(",")
    ]
    return rivals_count_table(found).markdown()


def _recorded(name: str, results: Path) -> str:
    return recorded_markdown(name, results)


def _model(name: str, results: Path) -> str:
    return comparison_markdown(name)


def _share(name: str, results: Path) -> str:
    return share_markdown()


KINDS: dict[str, Callable[[str, Path], str]] = {
    "figure": _figure,
    "sweep": _sweep,
    "panels": _panels,
    "costs": _costs,
    "verdicts": _verdicts,
    "claims": _claims,
    "published": _published,
    "recordings": _recordings,
    "calls": _calls,
    "threads": _threads,
    "headline": _headline,
    "streams": _streams,
    "matrix": _matrix,
    "matrix-counts": _matrix_counts,
    "matrix-off": _matrix_off,
    "reports": _reports,
    "reports-count": _reports_count,
    "rivals": _rivals,
    "rivals-count": _rivals_count,
    "recorded": _recorded,
    "model": _model,
    "papers": papers_markdown,
    "share": _share,
    "spans": spans_markdown,
    "spans-findings": spans_findings_markdown,
    "spans-tables": spans_tables_markdown,
}
BLOCK = re.compile(
    rf"(?P<open><!-- (?P<kind>{'|'.join(KINDS)}):(?P<name>[a-z0-9._,\[\]-]+)"
    rf"(?: kernel:(?P<kernel>{'|'.join(map(re.escape, RELEASES))}))? -->\n).*?"
    r"(?P<close><!-- /(?P=kind) -->)",
    re.DOTALL,
)
