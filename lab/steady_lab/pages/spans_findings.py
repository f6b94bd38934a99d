# SPDX-License-Identifier: MIT OR Apache-2.0
"""The e.MMC analysis paper's statements on its spans, and for how many load pairs they hold here.

A pair is two loads that differ in the one thing that the sentence is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steady_lab.figures.table import TextTable
from steady_lab.figures.traced_loads import Place
from steady_lab.pages.traced_runs import TracedRun, TracedRuns

Word = tuple[str, str]


@dataclass(frozen=True)
class Statement:
    """The median of `means` is larger for the load with the first of two words in its name.

    {large} and {small} are sizes of a place.
    """

    text: str
    means: str
    words: Word
    only: Callable[[TracedRun], bool]


def _is_large(run: TracedRun) -> bool:
    return run.key.size_kib == max(run.key.place.ios)


STATEMENTS = (
    Statement(
        "VFS/FS always takes more time in sync mode than in direct mode",
        "submission_us",
        ("sync-", "direct-"),
        lambda run: True,
    ),
    Statement(
        "A sequential write takes more time than a random write during VFS/FS (the larger size)",
        "submission_us",
        ("-write", "-randwrite"),
        _is_large,
    ),
    Statement(
        "The last span of a read is longer in sync mode, which copies memory, than in direct mode",
        "post_us",
        ("sync-", "direct-"),
        lambda run: run.key.load.op == "read",
    ),
    Statement(
        "Software has more of the time of a small write than of a large one",
        "software_percent",
        ("-{small}k-", "-{large}k-"),
        lambda run: run.key.load.op == "write",
    ),
)


def findings_table(runs: TracedRuns, places: Sequence[Place]) -> TextTable:
    """Return the paper's sentences on the runs of these places, by medians of their means."""
    body = [
        [statement.text, *(_held(statement, runs.of_place(place)) for place in places)]
        for statement in STATEMENTS
    ]
    header = ["paper, medians here", *(place.title for place in places)]
    return TextTable("**The paper's text, and for how many pairs it holds here**", header, body)


def _held(statement: Statement, runs: Sequence[TracedRun]) -> str:
    sizes = runs[0].key.place.ios
    words = {"small": min(sizes), "large": max(sizes)}
    longer, shorter = (word.format(**words) for word in statement.words)
    by_name = {run.key.name: run for run in runs}
    pairs = [
        (run, by_name[name.replace(longer, shorter)])
        for name, run in by_name.items()
        if statement.only(run) and longer in name
    ]
    held = sum(a.median(statement.means) > b.median(statement.means) for a, b in pairs)
    return f"{held} of {len(pairs)}"
