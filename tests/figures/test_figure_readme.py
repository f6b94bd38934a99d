# SPDX-License-Identifier: MIT OR Apache-2.0
"""The README's tables come from the CSV, and a stale table is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.errors import LabError
from steady_lab.figures.metric import CLASSES
from steady_lab.figures.rows import Row, csv_text, point_text
from steady_lab.figures.spec import load_figure
from steady_lab.pages.blocks import fill_blocks

NAME = "s1-fig5-randread"
OPEN, CLOSE = f"<!-- figure:{NAME} -->\n", "<!-- /figure -->"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build folder whose CSV gives every cell of the figure the same, known latencies."""
    workload = load_figure(NAME).workload
    rows = [
        Row(NAME, variant.name, point_text(point), class_name, "randread", "64",
            500_000, 1_000_000, 2_000_000, 2_340_000, 3_000_000, 4_000_000, 5_000_000,
            4000, 12.5)
        for variant in workload.variants
        for point in workload.points
        for class_name in CLASSES
    ]  # fmt: skip
    results = tmp_path / "results"
    results.mkdir()
    (results / f"{NAME}.csv").write_text(csv_text(rows), encoding="utf-8")
    return tmp_path


def test_block_is_filled_and_the_rest_left_alone(build: Path) -> None:
    filled = fill_blocks(f"before\n{OPEN}old\n{CLOSE}\nafter\n", build / "results")
    assert filled.startswith(f"before\n{OPEN}")
    assert filled.endswith(f"{CLOSE}\nafter\n")
    assert "old" not in filled
    assert "| k2, split_kib=4 | 2.34 | 2.34 | 2.34 | 2.34 | 2.34 | 2.34 | 2.34 |" in filled
    assert "| none | 1.00 | 2.34 | 3.00 | 5.00 | 4000 | 12.5 | 12.5 | 12.5 |" in filled
    assert fill_blocks(filled, build / "results") == filled


def test_block_of_another_release_has_its_results(build: Path) -> None:
    other = build / "6.12" / "results"
    other.mkdir(parents=True)
    text = (build / "results" / f"{NAME}.csv").read_text(encoding="utf-8")
    (other / f"{NAME}.csv").write_text(text.replace("2340000", "7770000"), encoding="utf-8")
    marker = OPEN.replace(" -->", " kernel:6.12 -->")
    filled = fill_blocks(f"{OPEN}{CLOSE}\n{marker}{CLOSE}\n", build / "results")
    first, second = filled.split(marker)
    assert "2.34" in first
    assert "7.77" not in first
    assert "7.77" in second


def test_lost_markers_are_an_error(build: Path) -> None:
    with pytest.raises(LabError, match="no block"):
        fill_blocks("nothing here", build / "results")


def test_check_notices_a_stale_table(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = build / "README.md"
    readme.write_text(f"{OPEN}{CLOSE}\n", encoding="utf-8")
    command = ["readme", str(readme), "--build", str(build)]
    assert main([*command, "--check"]) == 1
    assert "run: steady-lab readme" in capsys.readouterr().err
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    current = readme.read_text(encoding="utf-8")
    readme.write_text(current.replace("2.34", "2.35"), encoding="utf-8")
    assert main([*command, "--check"]) == 1


def test_summary_quotes_the_csv(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", NAME, "--build", str(build)]) == 0
    assert "is 2.34 ms under k2" in capsys.readouterr().out
