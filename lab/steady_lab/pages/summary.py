# SPDX-License-Identifier: MIT OR Apache-2.0
"""What figures found as text, and whether such a text is still current.

All is read from the CSV that `steady-lab run` wrote: no number in a table or a sentence is typed.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from steady_lab.figures.rows import read_csv
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import figure_tables, summary_text

NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Relative, and absolute for numbers near zero: as wide as the tightest check of a figure.
TOLERANCE = 0.05


def figure_summary(figure: Figure, results: Path) -> str:
    """Return tables and sentences of a figure, from its CSV in `results`."""
    measured = read_csv(results / f"{figure.name}.csv")
    parts = [
        figure.title,
        *(table.text() for table in figure_tables(figure, measured)),
        summary_text(figure, measured),
    ]
    return "\n\n".join(parts)


def is_current(old: str, new: str) -> bool:
    """Tell whether two texts differ only in numbers, and in those by no more than the tolerance.

    What else is installed on a machine shifts the guest's clock reads, and latencies with them, by
    steps of 256 ns (ARCHITECTURE.md, current problems), and now and then a table's last digit.
    """
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(
        math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs
    )
