# SPDX-License-Identifier: MIT OR Apache-2.0
"""Committed results: what docs/results/records/ keeps of a figure, so that pages can be checked.

Per figure NAME: NAME.csv (the rows, as `steady-lab run` writes them); of a recording NAME.tail.csv,
too, its callers' histograms, of which pages count the calls that waited. provenance.csv has a line
for each.
`steady-lab results` writes them; the pages and pictures are made of them and of the specs alone.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from steady_lab.figures.results import FigureResult, write_atomically
from steady_lab.figures.rows import Measurements, ResultError, csv_text, read_csv
from steady_lab.figures.spec import Figure
from steady_lab.toml_table import Point

TAIL_COLUMNS = ("variant", "latency_ns", "count")
PROVENANCE_COLUMNS = ("figure", "kernel", "fio", "steady", "seed", "config", "modules")
HASH_DIGITS = 12


@dataclass(frozen=True)
class Recorded:
    """A figure's committed numbers, as plots and tables need them."""

    measured: Measurements
    tails: dict[str, list[tuple[int, int]]]

    def histogram_ns(self, variant: str, point: Point, class_name: str) -> list[tuple[int, int]]:
        """Return a variant's real-time histogram; empty unless it is of a recording."""
        return self.tails.get(variant, []) if class_name == "rt" else []


def write_record(figure: Figure, result: FigureResult, folder: Path) -> None:
    """Write a figure's rows and tails to `folder`; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{figure.name}.csv", csv_text(result.measured.rows))
    if not figure.workload.recording:
        return
    lines = [
        (variant.name, latency_ns, count)
        for variant in figure.workload.variants
        for latency_ns, count in result.histogram_ns(variant.name, None, "rt")
    ]
    write_atomically(folder / f"{figure.name}.tail.csv", _csv(TAIL_COLUMNS, lines))


def read_record(figure: Figure, folder: Path) -> Recorded:
    """Read what `write_record` wrote; raises ResultError naming the file."""
    tails: dict[str, list[tuple[int, int]]] = {}
    path = folder / f"{figure.name}.tail.csv"
    for variant, latency_ns, count in (
        _lines(path, TAIL_COLUMNS) if figure.workload.recording else ()
    ):
        tails.setdefault(variant, []).append((int(latency_ns), int(count)))
    return Recorded(read_csv(folder / f"{figure.name}.csv"), tails)


def compare_with_record(figure: Figure, results: Path, folder: Path) -> str:
    """Return "" if a figure's rows are the committed ones to the byte, else how they differ.

    Raises OSError if either is missing.
    """
    measured = (results / f"{figure.name}.csv").read_text(encoding="utf-8")
    recorded = (folder / f"{figure.name}.csv").read_text(encoding="utf-8")
    if measured == recorded:
        return ""
    ours, theirs = (text.replace("\n", ",").split(",") for text in (measured, recorded))
    if len(ours) != len(theirs):
        return f"{figure.name}: {len(ours)} values, {len(theirs)} in {folder}"
    wrong = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    return (
        f"{figure.name}: {len(wrong)} of {len(ours)} values differ from {folder}, "
        f"the first is {wrong[0][0]} instead of {wrong[0][1]}"
    )


def write_provenance(results: dict[str, FigureResult], folder: Path) -> None:
    """Add or replace the figures' lines in provenance.csv; raises OSError."""
    path = folder / "provenance.csv"
    known = {line[0]: line for line in _lines(path, PROVENANCE_COLUMNS)} if path.exists() else {}
    for name, result in results.items():
        kernel, tool = result.document["kernel"], result.document["tool"]
        known[name] = [
            name,
            kernel["release"],
            tool.get("fio", ""),
            tool["steady"],
            str(result.document["seed"]),
            kernel["config_sha256"][:HASH_DIGITS],
            kernel["modules_sha256"][:HASH_DIGITS],
        ]
    write_atomically(path, _csv(PROVENANCE_COLUMNS, sorted(known.values())))


def read_provenance(folder: Path) -> dict[str, dict[str, str]]:
    """Return what each recorded figure was measured with, by the names of PROVENANCE_COLUMNS."""
    lines = _lines(folder / "provenance.csv", PROVENANCE_COLUMNS)
    return {line[0]: dict(zip(PROVENANCE_COLUMNS, line, strict=True)) for line in lines}


def _csv(columns: tuple[str, ...], lines: list[tuple[str, int, int]] | list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return out.getvalue()


def _lines(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            first, *lines = list(csv.reader(file)) or [[]]
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    if tuple(first) != columns or any(len(line) != len(columns) for line in lines):
        raise ResultError(f"{path}: every line must have {','.join(columns)}")
    return lines
