# SPDX-License-Identifier: MIT OR Apache-2.0
"""The elements of a paper: what it says, where our value is read, and within what it must lie.

Files are experiments/papers/NAME.toml, schema "steadyio.paper/1". Loading is strict, as of figures.
`name`, `short` and `title` name the paper, `[fitted_to]` the files (NAME = path) with inputs of a
fit. Each `[[element]]` has

- `n`, `what`, `section`: its number, what it is, and where the paper has it;
- `paper`: the number, `[low, high]`, or what the paper says in words; `unit` of its and our number;
- `within_percent` [20]: how far ours may be from a number; `min`, `max`: limits next to words;
- `ours`: one or more tables of paper_value.py; every number must be within the limits;
- `fit`: `["NAME: text"]`, inputs in `[fitted_to]` that decide it; required if the number is one;
- `verdict`, `because`: `different`, `not reproduced` or `not attempted`, and the reason. Without
  them it is reproduced, or fitted if it has a `fit`. A number with limits must then lie in them,
  and outside of them if there is a verdict;
- `spec`: what measures it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.pages.paper_value import Source, take_source
from steady_lab.paths import PROJECT
from steady_lab.toml_table import NAME_PATTERN, Table, load_toml

SCHEMA = "steadyio.paper/1"
PAPERS = PROJECT / "experiments" / "papers"
# With a reason, in place of "reproduced" and "fitted".
REASONED = ("different", "not reproduced", "not attempted")
VALUE_MAX = 1e9
WITHIN_PERCENT = 20
WITHIN_PERCENT_MAX = 25
WORDS_MAX = 20


@dataclass(frozen=True)
class Element:
    """One element of a paper; `paper` is its printed value, ours must lie in `low` to `high`."""

    number: int
    what: str
    section: str
    paper: str  # with the unit, if it is a number
    low: float | None
    high: float | None
    unit: str
    ours: tuple[Source, ...]
    fit: tuple[str, ...]  # the inputs of a fit that decide it
    verdict: str  # one of REASONED, or empty
    reason: str
    spec: str


@dataclass(frozen=True)
class Paper:
    """A paper's elements; `short` is what tables call it."""

    where: str
    short: str
    title: str
    elements: tuple[Element, ...]


def load_papers(folder: Path = PAPERS) -> list[Paper]:
    """Read all papers in the order of their files' names. Raises SpecError."""
    return [load_paper(path) for path in sorted(folder.glob("*.toml"))]


def load_paper(path: Path) -> Paper:
    """Read one paper; its elements must be numbered from 1. Raises SpecError."""
    raw = load_toml(path)
    table = Table(raw, str(path))
    table.choice("schema", (SCHEMA,))
    if table.text("name", NAME_PATTERN) != path.stem:
        raise table.fail("name", f"the file's name, {path.stem!r}")
    short, title = table.text("short"), table.text("title")
    inputs = _inputs(table, list(raw.get("fitted_to", {})))
    given = enumerate(table.tables("element"), 1)
    elements = tuple(_element(item, n, inputs) for n, item in given)
    table.close()
    return Paper(str(path), short, title, elements)


def _inputs(table: Table, given: list[str]) -> dict[str, Any]:
    """Read [fitted_to]: NAME = file whose values are inputs of a fit."""
    names = table.table("fitted_to", default={})
    found = {name: load_toml(PROJECT / names.text(name)) for name in given}
    names.close()
    return found


def _element(table: Table, number: int, inputs: dict[str, Any]) -> Element:
    if table.integer("n", 1, 999) != number:
        raise table.fail("n", f"{number}: elements are in order, without a gap")
    table.where = f"{table.where} (n = {number})"
    paper, low, high = _paper_value(table)
    verdict = table.choice("verdict", REASONED) if table.has("verdict") else ""
    element = Element(
        number=number,
        what=table.text("what"),
        section=table.text("section", default=""),
        paper=paper,
        low=low,
        high=high,
        unit=table.text("unit", default=""),
        ours=tuple(take_source(item) for item in table.tables("ours")),
        fit=_fit(table, inputs, low),
        verdict=verdict,
        reason=_reason(table, verdict),
        spec=table.text("spec", default=""),
    )
    if not element.ours and verdict not in ("different", "not attempted"):
        raise table.fail("ours", "given: where our value, or the proof of it, is")
    if element.ours and verdict == "not attempted":
        raise table.fail("verdict", "another: there are [[element.ours]]")
    table.close()
    return element


def _paper_value(table: Table) -> tuple[str, float | None, float | None]:
    """Return the paper's value, and the limits for ours."""
    allowed = "a number, an array of two for a range, or what the paper says"
    value = table.take("paper", allowed)
    within = table.integer("within_percent", 1, WITHIN_PERCENT_MAX, default=WITHIN_PERCENT) / 100
    bounds = [_bound(table, key) for key in ("min", "max")]
    if isinstance(value, str):
        return value, bounds[0], bounds[1]
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or any(isinstance(e, bool) or not isinstance(e, int | float) for e in ends):
        raise table.fail("paper", allowed)
    if bounds != [None, None]:
        raise table.fail("min", "left out: the paper's number and within_percent give the limits")
    low, high = sorted(map(float, ends))
    text = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    unit = table.text("unit", default="")
    return f"{text} {unit}".rstrip(), low * (1 - within), high * (1 + within)


def _bound(table: Table, key: str) -> float | None:
    return table.number(key, -VALUE_MAX, VALUE_MAX) if table.has(key) else None


def _fit(table: Table, inputs: dict[str, Any], low: float | None) -> tuple[str, ...]:
    """Read `fit`, "NAME: text" of inputs that are there. An input cannot count as reproduced."""
    named = table.items("fit", "an array of inputs of the fit") if table.has("fit") else []
    for text in named:
        name, _, wanted = str(text).partition(": ")
        if name not in inputs or wanted not in set(_texts(inputs[name])):
            raise table.fail("fit", f'"NAME: text" of an input in [fitted_to], not {text!r}')
    value = table.take("paper", "given")
    is_input = isinstance(value, float) and any(value in _numbers(each) for each in inputs.values())
    if is_input and low is not None and not table.has("fit"):
        raise table.fail("fit", f"given: {value:g} is an input of a fit")
    return tuple(map(str, named))


def _reason(table: Table, verdict: str) -> str:
    reason = table.text("because", default="")
    if bool(verdict) != bool(reason):
        raise table.fail("because", "given with `verdict`, and only then")
    if len(reason.split()) > WORDS_MAX:
        raise table.fail("because", f"at most {WORDS_MAX} words")
    return reason


def _texts(raw: Any) -> list[str]:
    """Return the keys and texts of parsed TOML, without those of inputs that are left out."""
    if isinstance(raw, dict):
        if "left_out" in raw:
            return []
        return [*raw, *(text for value in raw.values() for text in _texts(value))]
    if isinstance(raw, list):
        return [text for value in raw for text in _texts(value)]
    return [raw] if isinstance(raw, str) else []


def _numbers(raw: Any) -> set[float]:
    """Return the fractional numbers of parsed TOML: whole ones are sizes, mostly."""
    if isinstance(raw, dict):
        values = [] if "left_out" in raw else list(raw.values())
    else:
        values = raw if isinstance(raw, list) else []
    found = {value for value in values if isinstance(value, float)}
    return found.union(*(_numbers(value) for value in values))
