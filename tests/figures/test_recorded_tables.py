# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables that no figure has are kept as CSV, and any table of the records can be printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.errors import LabError
from steady_lab.figures.table import TextTable
from steady_lab.pages.blocks import fill_blocks
from steady_lab.pages.recorded_tables import read_tables, recorded_markdown, write_tables
from steady_lab.pages.results import RECORDS

pytestmark = pytest.mark.reads("lab", "device", "experiments", "docs")

SPEED = TextTable("Speed, MiB/s", ["", "4 KiB"], [["ext4, O_DIRECT", "1"], ['"raw"', "2"]])
COUNT = TextTable("Commands", ["", "least", "most"], [["ext4", "1", "2"]])


def test_tables_read_back_as_written_and_a_part_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ways.tables.csv"
    write_tables(path, "timed", [SPEED, COUNT])
    write_tables(path, "timed-6.12", [SPEED])
    write_tables(path, "timed", [COUNT])
    assert read_tables(path) == {"timed.commands": COUNT, "timed-6.12.speed-mib-s": SPEED}
    assert recorded_markdown("ways.timed-6.12.speed-mib-s", tmp_path) == SPEED.markdown()


def test_a_table_that_is_not_recorded_is_named(tmp_path: Path) -> None:
    write_tables(tmp_path / "ways.tables.csv", "timed", [COUNT])
    with pytest.raises(LabError, match=r"has no table timed\.speed \(it has timed\.commands\)"):
        recorded_markdown("ways.timed.speed", tmp_path)
    with pytest.raises(LabError, match=r"other\.tables\.csv: cannot be read"):
        recorded_markdown("other.timed.speed", tmp_path)


def test_a_table_of_the_records_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--print", "costs:streams[none,k2-440us]"]) == 0
    out = capsys.readouterr().out
    assert "|  | none | k2, rt_block_us=440 |" in out
    assert "| every 10 ms | 6.72 / 77.3 | 1.11 / 72.9 |" in out


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("costs:streams[k3]", "has no variant k3"),
        ("price:streams", "no block KIND:NAME"),
        ("costs:none-such", "cannot be read"),
    ],
)
def test_what_cannot_be_printed_is_named(
    block: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", "--print", block]) == 1
    assert problem in capsys.readouterr().err


def test_a_page_has_the_chosen_variants_only() -> None:
    page = "<!-- costs:streams[k2-440us] -->\n<!-- /costs -->\n"
    made = fill_blocks(page, RECORDS)
    assert "k2, rt_block_us=440" in made
    assert "bfq" not in made
