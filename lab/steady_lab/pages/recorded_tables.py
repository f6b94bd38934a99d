# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables that no figure has, as records: docs/results/records/NAME.tables.csv.

A line is the table's name and its cells; a table's first line is its caption, the second its
header. So one file holds tables of any shape, and a page shows those that it needs.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.results import write_atomically
from steady_lab.figures.table import TextTable


def table_name(part: str, caption: str) -> str:
    """Return the name of a table in its file: the part that it belongs to, and its caption."""
    return f"{part}.{re.sub(r'[^a-z0-9]+', '-', caption.lower()).strip('-')}"


def read_tables(path: Path) -> dict[str, TextTable]:
    """Return the tables of a record by name; raises LabError if it cannot be read."""
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from None
    found: dict[str, list[list[str]]] = {}
    for name, *cells in lines:
        found.setdefault(name, []).append(cells)
    return {
        name: TextTable(caption, header, body)
        for name, ((caption,), header, *body) in found.items()
    }


def write_tables(path: Path, part: str, tables: Iterable[TextTable]) -> None:
    """Replace the tables of a part, whose names are PART.CAPTION; raises OSError."""
    known = read_tables(path) if path.exists() else {}
    kept = {name: table for name, table in known.items() if not name.startswith(f"{part}.")}
    made = {table_name(part, table.caption): table for table in tables}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for name, table in sorted({**kept, **made}.items()):
        for cells in ([table.caption], table.header, *table.body):
            writer.writerow([name, *cells])
    write_atomically(path, out.getvalue())


def recorded_markdown(reference: str, records: Path) -> str:
    """Return a table as Markdown; raises LabError as recorded_table() does."""
    return recorded_table(reference, records).markdown()


def recorded_table(reference: str, records: Path) -> TextTable:
    """Return table TABLE of FILE.tables.csv, for FILE.TABLE; raises LabError without it."""
    file, _, name = reference.partition(".")
    path = records / f"{file}.tables.csv"
    tables = read_tables(path)
    if name not in tables:
        raise LabError(f"{path}: has no table {name} (it has {', '.join(tables)})")
    return tables[name]
