# SPDX-License-Identifier: MIT OR Apache-2.0
"""A figure's numbers as text: tables for the terminal and Markdown, checks, sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.figures.checks import CheckResult
from steady_lab.figures.metric import CLASS_WORDS, LATENCIES, METRICS, Metric
from steady_lab.figures.quantity import Quantity
from steady_lab.figures.rows import Measurements, point_text
from steady_lab.figures.spec import Figure
from steady_lab.toml_table import Point

DETAIL_THROUGHPUTS = tuple(METRICS[name] for name in ("rt.mib_s", "bg.mib_s", "total.mib_s"))


@dataclass(frozen=True)
class TextTable:
    """A table of strings: the first column is text, the others are numbers."""

    caption: str
    header: list[str]
    body: list[list[str]]

    def text(self) -> str:
        """Return aligned columns for a terminal."""
        lines = [self.header, *self.body]
        widths = [max(len(line[n]) for line in lines) for n in range(len(self.header))]
        first, *rest = widths
        out = [self.caption]
        for line in lines:
            numbers = (cell.rjust(width) for cell, width in zip(line[1:], rest, strict=True))
            out.append("  ".join([line[0].ljust(first), *numbers]).rstrip())
        return "\n".join(out)

    def markdown(self) -> str:
        """Return a Markdown table under its caption."""
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in self.body]
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *escaped]
        return "\n".join([f"{self.caption}:", "", *(f"| {' | '.join(line)} |" for line in lines)])


def format_number(value: float) -> str:
    """Return a number with three significant digits, but all digits of its whole part."""
    magnitude = abs(value)
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2
    return f"{value:.{decimals}f}"


def figure_tables(figure: Figure, measured: Measurements) -> list[TextTable]:
    """Return the figure's tables; without a sweep there is one complete table."""
    details = detail_table(figure, measured)
    return [sweep_table(figure, measured), details] if figure.is_swept else [details]


def sweep_table(figure: Figure, measured: Measurements) -> TextTable:
    """Return the plotted metric by variant and sweep point."""
    workload, metric = figure.workload, figure.plot.y_metric
    x_label = figure.plot.x_label[0].lower() + figure.plot.x_label[1:]
    caption = f"{figure.plot.y_label} by {x_label}"
    body = [
        [v.title, *(format_number(measured.value(v.name, p, metric)) for p in figure.shown_points)]
        for v in workload.variants
    ]
    header = [point_text(point) for point in figure.shown_points]
    return TextTable(caption, ["", *header], body)


def detail_table(figure: Figure, measured: Measurements) -> TextTable:
    """Return latencies, count and throughputs of every variant at the figure's detail point."""
    point = figure.plot.detail_point
    throughputs = [metric for metric in DETAIL_THROUGHPUTS if _is_reported(measured, point, metric)]
    latencies = [Metric("rt", statistic) for statistic in figure.plot.detail_latencies]

    def line(variant: str) -> list[str]:
        values = [
            format_number(measured.value(variant, point, metric))
            for metric in (*latencies, *throughputs)
        ]
        values.insert(len(latencies), str(measured.row(variant, point, "rt").count))
        return values

    header = [f"{LATENCIES[metric.statistic]} ms" for metric in latencies] + ["count"]
    header += [f"{CLASS_WORDS[metric.class_name]} MiB/s" for metric in throughputs]
    return TextTable(
        f"Real-time latency and count, and throughput; {figure.plot.detail_label}",
        ["", *header],
        [[v.title, *line(v.name)] for v in figure.workload.variants],
    )


def _is_reported(measured: Measurements, point: Point, metric: Metric) -> bool:
    """Tell whether any variant has the class, and its load generator reports the value."""
    rows = [row for row in measured.rows if row.point == point_text(point)]
    return any(
        row.class_name == metric.class_name and row.reported(metric) is not None for row in rows
    )


def check_lines(results: Sequence[CheckResult]) -> list[str]:
    """Return one line per check: verdict, value, bound, the paper's value, and the claim."""
    return [
        f"{result.verdict}  {result.check.name}: {with_unit(result.value, result.check.quantity)}"
        f" (wanted {result.check.bound}{_paper(result)}): {result.check.text}"
        for result in results
    ]


def with_unit(value: float, quantity: Quantity) -> str:
    """Return a value of a quantity, rounded for reading, with its unit."""
    return f"{format_number(value)} {quantity.unit}" if quantity.unit else f"{value:g}"


def _paper(result: CheckResult) -> str:
    paper, unit = result.check.paper, result.check.quantity.unit
    return "" if paper is None else f"; paper {paper:g} {unit}".rstrip()


def summary_text(figure: Figure, measured: Measurements) -> str:
    """Return the figure's sentences with every `{name}` replaced by its measured value."""

    def quote(quantity: Quantity) -> str:
        value = quantity.evaluate(measured)
        return format_number(value) if quantity.unit == "x" else with_unit(value, quantity)

    values = {name: quote(quantity) for name, quantity in figure.summary.values.items()}
    return " ".join(figure.summary.text.format(**values).split())
