# SPDX-License-Identifier: MIT OR Apache-2.0
"""A paper's numbers next to those of `steady model`, computed from the paper's own spans."""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_lab.errors import LabError
from steady_lab.pages.model import SPANS, Compared, compare, comparison_markdown
from steady_lab.toml_table import load_toml

EXAMPLE = """
schema = "steadyio.spans/1"
name = "example"
[[spans]]
name = "4 KiB reads"
op = "read"
size_bytes = 4096
submission_us = 40.25
block_us = 20
device_us = 180
post_us = 35.5
"""
PUBLISHED = """
schema = "steadyio.published-model/1"
span_rounding_us = 0.5
[[value]]
where = "Table 1"
spans = "4 KiB reads"
quantity = "single_thread_mib_s"
printed = "14.2"
"""


def of_s5() -> list[Compared]:
    return compare(SPANS / "s5.toml", SPANS / "published" / "s5.toml")


def test_tables_2_and_3_of_s5_are_reproduced_number_by_number() -> None:
    tables = [one for one in of_s5() if one.value.where in ("Table 2", "Table 3")]
    assert [(one.value.printed, one.ours) for one in tables] == [
        *[("60", "60"), ("182", "182"), ("81", "80"), ("644", "644")],
        *[("217", "217"), ("628", "628"), ("173", "173"), ("443", "443")],
        *[("38.01", "38.02"), ("84.8", "84.8"), ("30.23", "30.25"), ("36.58", "36.44")],
    ]


def test_one_number_of_the_tables_does_not_follow_from_spans_within_their_rounding() -> None:
    tables = [one for one in of_s5() if one.value.where.startswith("Table")]
    found = {(one.value.printed, one.verdict) for one in tables if one.verdict != "same"}
    within = {(printed, "within span rounding") for printed in ("81", "38.01", "30.23")}
    assert found == within | {("36.58", "differs")}


def test_nothing_equal_has_a_reason() -> None:
    assert not [one for one in of_s5() if one.verdict == "same" and one.value.reason]


def test_the_page_has_a_line_for_each_value() -> None:
    text = comparison_markdown("s5")
    read, write = "| Table 3 | 64KB random read", "| Table 3 | 64KB random write"
    assert f"{read} | many cores, MiB/s | 84.8 | 84.8 | 84.7 to 84.9 | same |" in text
    assert f"{write} | many cores, MiB/s | 36.58 | 36.44 | 36.43 to 36.45 | differs: " in text
    assert text.count("\n") == len(load_toml(SPANS / "published" / "s5.toml")["value"]) + 1


def verdict(folder: Path, published: str) -> str:
    (folder / "spans.toml").write_text(EXAMPLE)
    (folder / "published.toml").write_text(published)
    (one,) = compare(folder / "spans.toml", folder / "published.toml")
    return one.verdict


@pytest.mark.parametrize(
    ("printed", "expected"), [("14.2", "same"), ("14.3", "within span rounding")]
)
def test_a_number_is_compared_within_its_decimals(
    tmp_path: Path, printed: str, expected: str
) -> None:
    assert verdict(tmp_path, PUBLISHED.replace("14.2", printed)) == expected


def test_a_number_that_differs_needs_a_reason(tmp_path: Path) -> None:
    differs = PUBLISHED.replace("14.2", "14.4")
    with pytest.raises(LabError, match="printed 14.4, model 14.2: needs a `reason`"):
        verdict(tmp_path, differs)
    assert verdict(tmp_path, differs + 'reason = "a misprint"\n') == "differs"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("4 KiB reads", "8 KiB reads", "not a name in"),
        ("14.2", "about 14", "must be a decimal number"),
        ('"14.2"', '"14.2"\nto = "15"', "as many decimals"),
        ("single_thread_mib_s", "speed", "must be one of single_thread_mib_s"),
        ("= 0.5", "= -1", "span_rounding_us = -1: must be"),
        ("model/1", "model/2", "must be one of steadyio.published-model/1"),
    ],
)
def test_wrong_published_values_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(LabError, match=says):
        verdict(tmp_path, PUBLISHED.replace(old, new))
