# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where our value for a paper's element is: a record, a check, a table of a page, or a proof.

record  a cell of docs/results/records/NAME.csv, by `variant`, `point`, `metric` (ms or MiB/s) and
        `kernel`.
figure  the quantity of a figure's [[check]], named by `check`, which must pass.
page    the first number of a cell of a table that a command writes into a page: `after` the line
        before the table, by the first cells of its `row`, and its `column`.
table   a cell of a table of docs/results/records/NAME.tables.csv, by `row` and `column`.
proof   a file that `contains` a text: a test, a source, a spec. `says` is shown.

`over` makes the first, third and fourth a ratio: it has the keys that differ in the other cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from steady_lab.errors import LabError
from steady_lab.figures.checks import evaluate
from steady_lab.figures.metric import METRICS
from steady_lab.figures.rows import Measurements, read_csv
from steady_lab.figures.spec import load_figure
from steady_lab.kernels.source import RELEASES, release_folder
from steady_lab.pages.recorded_tables import recorded_table
from steady_lab.paths import PROJECT
from steady_lab.toml_table import Point, Table

PAGES = PROJECT / "docs"
NUMBER = re.compile(r"-?[\d.]+")


class Source(Protocol):
    """Where a value is."""

    def read(self, records: Path) -> float | str:
        """Return the value, or the text of a proof. Raises LabError."""


@dataclass(frozen=True)
class RecordCell:
    """A metric of a figure's committed CSV."""

    figure: str
    variant: str
    point: Point
    metric: str
    release: str

    def read(self, records: Path) -> float:
        """Return the metric in its unit."""
        folder = release_folder(records.parent, self.release) / records.name
        measured = _measured(folder / f"{self.figure}.csv")
        return float(measured.value(self.variant, self.point, METRICS[self.metric]))


@dataclass(frozen=True)
class CheckValue:
    """The quantity that a figure's check bounds."""

    figure: str
    check: str

    def read(self, records: Path) -> float:
        """Return the quantity; raises LabError also if the check fails."""
        figure = load_figure(self.figure)
        results = evaluate(figure.checks, _measured(records / f"{self.figure}.csv"))
        found = [result for result in results if result.check.name == self.check]
        if not found:
            raise LabError(f"{self.figure}: has no check {self.check}")
        if not found[0].passed:
            raise LabError(f"{self.figure}: the check {self.check} fails")
        return found[0].value


@dataclass(frozen=True)
class PageCell:
    """The first number of a cell: page, the line before the table, row and column.

    The page is a file below docs, or a block KIND:NAME, whether or not a page shows it.
    """

    page: str
    after: str
    row: tuple[str, ...]  # its first cells
    column: str

    def read(self, records: Path) -> float:
        """Return the number. Raises LabError if there is no such cell."""
        header, body = _table(self.page, self.after, records)
        return _number(header, body, self.row, self.column, f"docs/{self.page}, {self.after!r}")


@dataclass(frozen=True)
class TableCell:
    """The first number of a cell of a recorded table, FILE.TABLE (recorded_tables.py)."""

    table: str
    row: tuple[str, ...]  # its first cells
    column: str

    def read(self, records: Path) -> float:
        """Return the number. Raises LabError if there is no such cell."""
        found = recorded_table(self.table, records)
        return _number(list(found.header), found.body, self.row, self.column, self.table)


@dataclass(frozen=True)
class Ratio:
    """One value by another of the same kind."""

    of: Source
    to: Source

    def read(self, records: Path) -> float:
        """Return the quotient. Raises LabError if the divisor is 0."""
        of, to = (float(source.read(records)) for source in (self.of, self.to))
        if not to:
            raise LabError(f"{self.to}: is 0, and cannot be divided by")
        return of / to


@dataclass(frozen=True)
class Proof:
    """What we have in words, and a file that must contain a text."""

    says: str
    path: str
    contains: str

    def read(self, records: Path) -> str:
        """Return the words. Raises LabError if the file lacks the text."""
        try:
            text = (PROJECT / self.path).read_text(encoding="utf-8")
        except OSError as error:
            raise LabError(f"{self.path}: cannot be read: {error.strerror}") from error
        if self.contains not in " ".join(text.split()):
            raise LabError(f"{self.path}: lacks {self.contains!r}, the proof of {self.says!r}")
        return self.says


def take_source(table: Table) -> Source:
    """Read one [[element.ours]]. Raises SpecError."""
    kinds: dict[str, Callable[[Table], Source]] = {
        "record": _take_record,
        "figure": lambda of: CheckValue(of.text("figure"), of.text("check")),
        "page": _take_page,
        "table": _take_table,
        "proof": lambda of: Proof(of.text("says"), of.text("proof"), of.text("contains")),
    }
    given = [kind for kind in kinds if table.has(kind)]
    if len(given) != 1:
        raise table.fail("record", f"given, or another one of {', '.join(kinds)}")
    source = kinds[given[0]](table)
    table.close()
    return source


def _take_record(table: Table) -> Source:
    figure = table.text("record")
    release = table.choice("kernel", RELEASES, default=RELEASES[0])
    metric = table.choice("metric", tuple(METRICS))
    of = RecordCell(figure, table.text("variant"), _point(table), metric, release)
    if not table.has("over"):
        return of
    over = table.table("over")
    other = RecordCell(
        over.text("record", default=figure),
        over.text("variant", default=of.variant),
        _point(over) if over.has("point") else of.point,
        over.choice("metric", tuple(METRICS), default=metric),
        release,
    )
    over.close()
    return Ratio(of, other)


def _take_page(table: Table) -> Source:
    page, after = table.text("page"), table.text("after")
    row, column = _row(table), table.text("column")
    of = PageCell(page, after, row, column)
    if not table.has("over"):
        return of
    over = table.table("over")
    other = PageCell(
        page,
        over.text("after", default=after),
        _row(over) if over.has("row") else row,
        over.text("column", default=column),
    )
    over.close()
    return Ratio(of, other)


def _take_table(table: Table) -> Source:
    name, row, column = table.text("table"), _row(table), table.text("column")
    of = TableCell(name, row, column)
    if not table.has("over"):
        return of
    over = table.table("over")
    other = TableCell(
        over.text("table", default=name),
        _row(over) if over.has("row") else row,
        over.text("column", default=column),
    )
    over.close()
    return Ratio(of, other)


def _number(
    header: Sequence[str],
    body: Sequence[Sequence[str]],
    row: tuple[str, ...],
    column: str,
    where: str,
) -> float:
    """Return the number in the one cell. Raises LabError."""
    rows = [cells for cells in body if tuple(cells[: len(row)]) == row]
    if len(rows) != 1 or header.count(column) != 1:
        raise LabError(
            f"{where}: {len(rows)} rows {row}, {header.count(column)} columns {column!r}: "
            "must be one each"
        )
    cell = rows[0][header.index(column)]
    number = NUMBER.match(cell)
    if not number:
        raise LabError(f"{where}: {cell!r} is no number")
    return float(number[0])


def _point(table: Table) -> Point:
    if not table.has("point"):
        return None
    value: Point = table.take("point", "a value of the sweep")
    return value


def _row(table: Table) -> tuple[str, ...]:
    value = table.take("row", "the first cell of a row, or an array of its first cells")
    return tuple(value) if isinstance(value, list) else (str(value),)


@cache
def _measured(path: Path) -> Measurements:
    return read_csv(path)


def _table(page: str, after: str, records: Path) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the first table that follows a line. Raises LabError."""
    lines = _lines(page, records)
    if after not in lines:
        raise LabError(f"docs/{page}: has no line {after!r}")
    rest = lines[lines.index(after) + 1 :]
    start = next((n for n, line in enumerate(rest) if line.startswith("|")), len(rest))
    end = next((n for n, line in enumerate(rest[start:]) if not line.startswith("|")), None)
    table = rest[start:] if end is None else rest[start : start + end]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    if len(cells) < 3:
        raise LabError(f"docs/{page}: has no table after {after!r}")
    return cells[0], cells[2:]


def _lines(page: str, records: Path) -> list[str]:
    if ":" in page:
        # Blocks have one of papers, so this import would be a circle.
        from steady_lab.pages.blocks import print_block  # noqa: PLC0415

        return [f"<!-- {page} -->", *print_block(page, records).splitlines()]
    try:
        return (PAGES / page).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LabError(f"docs/{page}: cannot be read: {error.strerror}") from error
