# SPDX-License-Identifier: MIT OR Apache-2.0
"""Verdicts on the papers' elements follow from our values, and cannot go stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from steady_lab.errors import LabError, SpecError
from steady_lab.pages.paper import WORDS_MAX, load_paper, load_papers
from steady_lab.pages.papers import TABLED, VERDICTS, judge, judge_all, table_markdown
from steady_lab.pages.results import RECORDS
from steady_lab.paths import PROJECT

# Proofs are anywhere.
pytestmark = pytest.mark.reads(
    *("lab", "kernel", "device", "experiments", "docs", "tests", "packaging"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"),
)

HEAD = """
schema = "steadyio.paper/1"
name = "tiny"
short = "Tiny"
title = "A tiny paper"

[fitted_to]
s1 = "experiments/devices/published/s1.toml"
"""
# 4.68 in the committed records.
GAIN = """ours = [{ record = "s1-fig5-randread", variant = "k2", point = 512, \
metric = "rt.p99_ms", over = { variant = "k2-split4" } }]"""


def tiny(folder: Path, *lines: str) -> Path:
    path = folder / "tiny.toml"
    element = "\n".join(['[[element]]\nn = 1\nwhat = "gain"', *lines])
    path.write_text(f"{HEAD}\n{element}\n", encoding="utf-8")
    return path


def verdict_of(folder: Path, *lines: str) -> str:
    paper = load_paper(tiny(folder, *lines))
    return judge(paper, paper.elements[0], RECORDS).verdict


def test_every_element_has_a_verdict_and_every_other_one_a_reason() -> None:
    found = judge_all(RECORDS)
    assert found
    for judged in found:
        assert judged.verdict in VERDICTS
        assert bool(judged.element.reason) == (judged.verdict not in ("reproduced", "fitted"))
        assert len(judged.element.reason.split()) <= WORDS_MAX


def test_every_element_is_under_its_verdict() -> None:
    found = judge_all(RECORDS)
    shown = table_markdown(found)
    for judged in found:
        section = shown.split(f"## {judged.paper.short}\n")[1].split("\n## ")[0]
        name = f"{judged.element.number} {judged.element.what}"
        if judged.verdict in TABLED:
            table = section.split(f"| {judged.verdict} | paper |")[1].split("\n\n")[0]
            assert f"\n| {name} | {judged.element.paper} |" in table
        else:
            row = next(line for line in section.splitlines() if f"| {judged.verdict} |" in line)
            assert re.search(rf"[|;] {re.escape(name)}[:; ]", row)


def test_every_spec_that_measures_an_element_exists() -> None:
    places = ("experiments/figures", "experiments/traces", "experiments/spans")
    known = {path.stem for place in places for path in (PROJECT / place).glob("*.toml")}
    for paper in load_papers():
        for element in paper.elements:
            name = element.spec.removeprefix("traces/").removeprefix("spans/").split(" ")[0]
            is_file = (PROJECT / name).is_file() or name in ("direct-path", "ssd_bounds")
            assert not name or name in known or is_file, (paper.short, element.number)


def test_a_value_within_the_limits_is_reproduced(tmp_path: Path) -> None:
    assert verdict_of(tmp_path, "paper = 4.5", GAIN) == "reproduced"


def test_a_value_outside_of_the_limits_needs_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"4\.68, is not within 7\.2 to 10\.8: needs `verdict`"):
        verdict_of(tmp_path, "paper = 9", GAIN)


def test_a_verdict_that_no_longer_holds_is_an_error(tmp_path: Path) -> None:
    stale = ('verdict = "not reproduced"', 'because = "the device is another"')
    assert verdict_of(tmp_path, "paper = 9", *stale, GAIN) == "not reproduced"
    with pytest.raises(LabError, match="drop `verdict`"):
        verdict_of(tmp_path, "paper = 4.5", *stale, GAIN)


def test_an_input_of_a_fit_is_fitted_and_not_reproduced(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"fit = None: must be given: 4\.36 is an input"):
        verdict_of(tmp_path, "paper = 4.36", GAIN)
    fit = 'fit = ["s1: Figure 5a, section 5.1, K2"]'
    assert verdict_of(tmp_path, "paper = 4.36", fit, GAIN) == "fitted"
    with pytest.raises(SpecError, match="of an input in"):
        verdict_of(tmp_path, "paper = 4.36", 'fit = ["s1: Figure 99"]', GAIN)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (('paper = "less"', GAIN), "it cannot fail"),
        (("paper = 4.5", "within_percent = 50", GAIN), "a whole number from 1 to 25"),
        (("paper = 4.5", "max = 5", GAIN), "min = None: must be left out"),
        (('paper = "yes"',), "where our value"),
        (('paper = "yes"', 'because = "so"', GAIN), "only then"),
        (("paper = 9", 'verdict = "different"', f'because = "{"so " * 21}"', GAIN), "20 words"),
        (('paper = "x"', 'verdict = "not reproduced"', 'because = "y"', GAIN), "with limits"),
    ],
)
def test_what_could_not_fail_is_refused(tmp_path: Path, lines: tuple[str, ...], error: str) -> None:
    with pytest.raises(LabError, match=error):
        verdict_of(tmp_path, *lines)


def test_a_proof_must_contain_its_text(tmp_path: Path) -> None:
    proof = 'ours = [{{ says = "so", proof = "README.md", contains = "{}" }}]'
    assert verdict_of(tmp_path, 'paper = "yes"', proof.format("steadyio")) == "reproduced"
    with pytest.raises(LabError, match=r"README\.md: lacks 'Zanzibar'"):
        verdict_of(tmp_path, 'paper = "yes"', proof.format("Zanzibar"))


def test_a_cell_of_a_page_must_be_there(tmp_path: Path) -> None:
    place = 'page = "model:s5", after = "<!-- model:s5 -->"'
    ours = f'ours = [{{ {place}, row = "Table 99", column = "model" }}]'
    with pytest.raises(LabError, match=r"0 rows \('Table 99',\)"):
        verdict_of(tmp_path, "paper = 4.5", ours)


def test_elements_are_numbered_without_a_gap(tmp_path: Path) -> None:
    path = tiny(tmp_path, "paper = 4.5", GAIN)
    path.write_text(path.read_text(encoding="utf-8").replace("n = 1", "n = 2"), encoding="utf-8")
    with pytest.raises(SpecError, match="1: elements are in order, without a gap"):
        load_paper(path)
