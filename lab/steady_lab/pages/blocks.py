# SPDX-License-Identifier: MIT OR Apache-2.0
"""The computed parts of Markdown pages: blocks `<!-- KIND:NAME -->` ... `<!-- /KIND -->`.

Everything between such markers is generated from a figure's spec and its CSV; the text around them
is written by hand. README.md, docs/results/s1.md and the guides are pages with blocks.

    figure:NAME     one figure or panel: sweep, detail and sentences
    panels:NAME     all panels of a figure: p50, p99, p99.9, maximum and count
    costs:NAME      all panels: p99, and background and total throughput
    claims:NAME     all panels: the checks, with what the paper found
    published:NAME  all panels: published values, ratio, and the reason where it is far from 1
    recordings:NAME  all panels of a recording: how long calls waited, and published values
    threads:NAME    all panels of threads on a host: speeds next to the model's, and latencies
    headline:NAME   a figure's short table: latency and background of the variants in `headline`
    streams:NAME    all panels of a figure with [alone]: per point, what every scheduler gives both
    rivals:NAME     all panels: where another variant is better than k2's default, and why
    model:NAME      experiments/spans/NAME.toml: published numbers next to those of `steady model`
    spans:NAME      experiments/traces/NAME.toml: spans of a real kernel, and what is published
    spans-tables:NAME  the same: speeds next to the model's, the spread, and the longest
    papers:counts   experiments/papers: verdicts by paper; papers:elements, one row per element
    share:throughput  what the device model says on the throughput that splitting leaves

`<!-- KIND:NAME kernel:6.12 -->` takes the results of that release instead of the default one's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
)
from steady_lab.kernels.source import RELEASES, release_folder
from steady_lab.pages.model import comparison_markdown
from steady_lab.pages.papers import papers_markdown
from steady_lab.pages.published import claims_markdown, published_markdown
from steady_lab.pages.recordings import calls_table, published_table
from steady_lab.pages.records import read_record
from steady_lab.pages.rivals import rivals_markdown
from steady_lab.pages.spans import spans_markdown, spans_tables_markdown
from steady_lab.pages.streams import headline_table, result_tables, stream_tables
from steady_lab.pages.threads import threads_markdown
from steady_lab.pages.throughput_share import share_markdown

WITHOUT_FIGURE = ("model", "papers", "share", "spans", "spans-tables")
PANEL_STATISTICS = ("p50", "p99", "p999", "max")
COSTS = (Metric("rt", "p99"), Metric("bg", "mib_s"), Metric("total", "mib_s"))


def fill_blocks(text: str, results: Path) -> str:
    """Return `text` with every block between markers generated again from the CSV in `results`.

    Raises LabError when there is no block, so a lost marker cannot go unnoticed.
    """
    if not BLOCK.search(text):
        raise LabError("no block <!-- figure:NAME --> ... <!-- /figure --> found")

    def fill(match: re.Match[str]) -> str:
        folder = release_folder(results.parent, match["kernel"] or RELEASES[0]) / results.name
        made = KINDS[match["kind"]](match["name"], folder)
        return f"{match['open']}{made.rstrip()}\n{match['close']}"

    return BLOCK.sub(fill, text)


def figures_on(text: str, release: str) -> list[str]:
    """Return what the blocks of a page refer to on a release: names of figures, each once."""
    blocks = [m for m in BLOCK.finditer(text) if m["kind"] not in WITHOUT_FIGURE]
    found = [m["name"] for m in blocks if (m["kernel"] or RELEASES[0]) == release]
    return list(dict.fromkeys(found))


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


def _costs(name: str, results: Path) -> str:
    return "\n\n".join(_cost(figure, measured_in(figure, results)) for figure in load_figures(name))


def _cost(figure: Figure, measured: Measurements) -> str:
    points = figure.shown_points
    table = TextTable(
        f"**{figure.title}**; {figure.plot.x_label} across, p99 (ms) / background / total (MiB/s)",
        ["", *(point_text(point) or "-" for point in points)],
        [
            [
                v.title,
                *(
                    " / ".join(format_number(measured.value(v.name, p, m)) for m in COSTS)
                    for p in points
                ),
            ]
            for v in figure.workload.variants
        ],
    )
    return table.markdown()


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


def _rivals(name: str, results: Path) -> str:
    return rivals_markdown(
        [(figure, measured_in(figure, results)) for figure in load_figures(name)]
    )


def _model(name: str, results: Path) -> str:
    return comparison_markdown(name)


def _share(name: str, results: Path) -> str:
    return share_markdown()


KINDS: dict[str, Callable[[str, Path], str]] = {
    "figure": _figure,
    "panels": _panels,
    "costs": _costs,
    "claims": _claims,
    "published": _published,
    "recordings": _recordings,
    "threads": _threads,
    "headline": _headline,
    "streams": _streams,
    "rivals": _rivals,
    "model": _model,
    "papers": papers_markdown,
    "share": _share,
    "spans": spans_markdown,
    "spans-tables": spans_tables_markdown,
}
BLOCK = re.compile(
    rf"(?P<open><!-- (?P<kind>{'|'.join(KINDS)}):(?P<name>[a-z0-9._-]+)"
    rf"(?: kernel:(?P<kernel>{'|'.join(map(re.escape, RELEASES))}))? -->\n).*?"
    r"(?P<close><!-- /(?P=kind) -->)",
    re.DOTALL,
)
