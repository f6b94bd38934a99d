# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the e.MMC analysis paper says of its spans, and for how many pairs of loads it holds here.

A pair is two loads that differ in the one thing that the sentence is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steady_lab.figures.table import TextTable
from steady_lab.pages.traced_runs import TracedRun

LARGE_KIB, SMALL_KIB = 128, 4
Quantity = Callable[[TracedRun], float]
Word = tuple[str, str]


@dataclass(frozen=True)
class Statement:
    """`quantity` is larger for the load with the first of two words in its name."""

    text: str
    quantity: Quantity
    words: Word
    only: Callable[[TracedRun], bool]


def _mean(span: str) -> Quantity:
    return lambda run: float(run.span(span)["mean_ns"])


STATEMENTS = (
    Statement(
        "VFS/FS always takes more time in sync mode than in direct mode",
        _mean("submission"),
        ("sync-", "direct-"),
        lambda run: True,
    ),
    Statement(
        "A sequential write takes more time than a random write during VFS/FS (128 KiB)",
        _mean("submission"),
        ("-write", "-randwrite"),
        lambda run: run.key.size_kib == LARGE_KIB,
    ),
    Statement(
        "The last span of a read is longer in sync mode, which copies memory, than in direct mode",
        _mean("post"),
        ("sync-", "direct-"),
        lambda run: run.key.load.op == "read",
    ),
    Statement(
        "Software has more of the time of a 4 KiB write than of one of 128 KiB",
        lambda run: float(run.group["software_percent"]),
        (f"-{SMALL_KIB}k-", f"-{LARGE_KIB}k-"),
        lambda run: run.key.load.op == "write",
    ),
)


def findings_table(runs: Sequence[TracedRun]) -> TextTable:
    """Return the paper's sentences on these runs, by their means."""
    by_name = {run.key.name: run for run in runs}
    body = []
    for statement in STATEMENTS:
        longer, shorter = statement.words
        pairs = [
            (run, by_name[name.replace(longer, shorter)])
            for name, run in by_name.items()
            if statement.only(run) and longer in name
        ]
        held = sum(statement.quantity(a) > statement.quantity(b) for a, b in pairs)
        body.append([statement.text, f"{held} of {len(pairs)} pairs"])
    return TextTable("**The paper's text, and where it holds here**", ["paper", "ext4 here"], body)
