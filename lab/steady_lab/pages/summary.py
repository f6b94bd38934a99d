# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures' results as text.

All is read from the CSV that `steady-lab run` wrote: no number in a table or a sentence is typed.
"""

from __future__ import annotations

from pathlib import Path

from steady_lab.figures.rows import read_csv
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import summary_text
from steady_lab.pages.streams import result_tables


def figure_summary(figure: Figure, results: Path) -> str:
    """Return tables and sentences of a figure, from its CSV in `results`."""
    measured = read_csv(results / f"{figure.name}.csv")
    parts = [
        figure.title,
        *(table.text() for table in result_tables(figure, measured)),
        summary_text(figure, measured),
    ]
    return "\n\n".join(parts)
