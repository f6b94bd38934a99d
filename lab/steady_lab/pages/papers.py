# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/results/papers.md: every element of the papers, ours next to it, and the verdict.

"reproduced" and "fitted" are not written down: they follow from our value and its limits. An
element that has another verdict must lie outside of them, so that none goes stale.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.figures.table import format_number
from steady_lab.pages.paper import REASONED, Element, Paper, load_papers
from steady_lab.pages.paper_value import Proof

VERDICTS = ("reproduced", "fitted", *REASONED)
# The page lists these elements; it has a table of the others, with the paper's values.
LISTED = ("reproduced", "fitted", "not attempted")
TABLED = ("different", "not reproduced")


@dataclass(frozen=True)
class Judged:
    """An element with our value as text, and the verdict in VERDICTS."""

    paper: Paper
    element: Element
    ours: str
    verdict: str


def judge(paper: Paper, element: Element, records: Path) -> Judged:
    """Read our values and decide. Raises LabError if the verdict that is written down is wrong."""
    where = f"{paper.where}: [[element]] n = {element.number}"
    try:
        values = [source.read(records) for source in element.ours]
    except LabError as error:
        raise LabError(f"{where}: {error}") from error
    numbers = [value for value in values if isinstance(value, float)]
    if numbers and element.low is None and element.high is None and not element.verdict:
        raise LabError(f"{where}: a number needs the paper's, or min or max: it cannot fail")
    bounded = numbers and (element.low is not None or element.high is not None)
    holds = all(_is_within(element, number) for number in numbers)
    ours = _shown(element, values)
    limits = " to ".join("-" if x is None else f"{x:g}" for x in (element.low, element.high))
    if element.verdict and bounded and holds:
        raise LabError(f"{where}: ours, {ours}, is within {limits}: drop `verdict`")
    if element.verdict == "not reproduced" and not bounded:
        raise LabError(f"{where}: only a number, with limits, can be not reproduced")
    if not element.verdict and not holds:
        raise LabError(f"{where}: ours, {ours}, is not within {limits}: needs `verdict`")
    verdict = element.verdict or ("fitted" if element.fit else "reproduced")
    return Judged(paper, element, ours, verdict)


def judge_all(records: Path) -> list[Judged]:
    """Judge every element of every paper. Raises LabError."""
    return [judge(paper, each, records) for paper in load_papers() for each in paper.elements]


def papers_markdown(name: str, records: Path) -> str:
    """Return the counts, or the tables of elements. Raises LabError."""
    found = judge_all(records)
    return counts_markdown(found) if name == "counts" else table_markdown(found)


def counts_markdown(found: list[Judged]) -> str:
    """Return how many elements of each paper have each verdict."""
    count = Counter((judged.paper.short, judged.verdict) for judged in found)
    papers = list(dict.fromkeys(judged.paper.short for judged in found))
    lines = [
        f"| paper | elements | {' | '.join(VERDICTS)} |",
        f"| --- |{' ---: |' * (1 + len(VERDICTS))}",
    ]
    for paper in papers:
        row = [count[paper, verdict] for verdict in VERDICTS]
        lines.append(f"| {paper} | {sum(row)} | {' | '.join(map(str, row))} |")
    total = [sum(count[paper, verdict] for paper in papers) for verdict in VERDICTS]
    lines.append(f"| all | {sum(total)} | {' | '.join(map(str, total))} |")
    return "\n".join(lines)


def table_markdown(found: list[Judged]) -> str:
    """Return for each paper lists and tables by verdict, and what measured the elements."""
    papers = dict.fromkeys(judged.paper.short for judged in found)
    return "\n\n".join(
        _paper(short, [each for each in found if each.paper.short == short]) for short in papers
    )


def _paper(short: str, found: list[Judged]) -> str:
    lists = ["| verdict | elements, with our value |", "| --- | --- |"]
    for verdict in LISTED:
        of = [judged for judged in found if judged.verdict == verdict]
        lists += [f"| {verdict} | {'; '.join(_item(each) for each in of)} |"] if of else []
    tables = [f"## {short}", "\n".join(lists)]
    for verdict in TABLED:
        rows = [_row(judged) for judged in found if judged.verdict == verdict]
        head = [f"| {verdict} | paper | ours | why |", "|" + " --- |" * 4]
        tables += ["\n".join([*head, *rows])] if rows else []
    return "\n\n".join([*tables, _measured_by(found)])


def _item(judged: Judged) -> str:
    """Return the element in a list: with our number, or why there is none."""
    element = judged.element
    measured = any(not isinstance(source, Proof) for source in element.ours)
    detail = element.reason or (judged.ours if measured else "")
    return _cell(f"{element.number} {element.what}{': ' if detail else ''}{detail}")


def _row(judged: Judged) -> str:
    element = judged.element
    first = f"{element.number} {element.what}"
    cells = (first, element.paper, judged.ours or "-", element.reason)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _measured_by(found: list[Judged]) -> str:
    specs = dict.fromkeys(judged.element.spec for judged in found if judged.element.spec)
    return f"Measured by {', '.join(f'`{spec}`' for spec in specs)}."


def _is_within(element: Element, number: float) -> bool:
    above = element.low is None or number >= element.low
    return above and (element.high is None or number <= element.high)


def _shown(element: Element, values: list[float | str]) -> str:
    """Return one value, the range of several, and the words."""
    numbers = sorted(value for value in values if isinstance(value, float))
    texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    ends = list(dict.fromkeys(_number(each) for each in (*numbers[:1], *numbers[-1:])))
    if ends:
        texts.insert(0, f"{' to '.join(ends)} {element.unit}".rstrip())
    return "; ".join(texts)


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else format_number(value)
