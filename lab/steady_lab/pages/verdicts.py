# SPDX-License-Identifier: MIT OR Apache-2.0
"""Per figure: how many of its claims hold, and how many published values are near ours."""

from __future__ import annotations

from collections.abc import Sequence

from steady_lab.figures.checks import evaluate
from steady_lab.figures.rows import Measurements
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable
from steady_lab.pages.published import claims_markdown, compare, published_markdown

Panels = Sequence[tuple[Figure, Measurements]]
PASS = "PASS"


def verdicts_table(figures: Sequence[tuple[str, Panels]]) -> TextTable:
    """Return a line per figure; raises LabError where a value far from the paper has no reason."""
    return TextTable(
        "Claims that hold, and published values that are 0.8 to 1.25 times ours",
        ["figure", "claims", "published"],
        [[f"`{name}`", *_counts(panels)] for name, panels in figures],
    )


def _counts(panels: Panels) -> list[str]:
    checked = [(figure, evaluate(figure.checks, measured)) for figure, measured in panels]
    claims_markdown(checked)  # Each value far from the paper's needs a reason.
    verdicts = [result.verdict for _, results in checked for result in results]
    # A recording's values are compared in another way (recordings.py).
    compared = [pair for pair in panels if not any(v.recipe for v in pair[0].workload.variants)]
    published_markdown(compared)
    values = [item for figure, measured in compared for item in compare(figure, measured)]
    near = sum(not item.far for item in values)
    return [
        f"{verdicts.count(PASS)} of {len(verdicts)}",
        f"{near} of {len(values)}" if values else "",
    ]
