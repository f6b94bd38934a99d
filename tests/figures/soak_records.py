# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every figure again: `make soak` runs what the documents say to run.

A figure gives the bytes of its committed record; without one, its claims hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import EXPERIMENTS, load_figures
from steady_lab.kernels.source import release_folder
from steady_lab.pages.records import compare_with_record
from steady_lab.pages.results import RECORDS

NAMES = sorted(path.stem for path in (EXPERIMENTS / "figures").glob("*.toml"))
RECORDS_6_12 = RECORDS.parent / "6.12" / "records"


def recorded(name: str, records: Path) -> list[str]:
    return [p.name for p in load_figures(name) if (records / f"{p.name}.csv").is_file()]


CASES = [(name, "6.1", RECORDS) for name in NAMES]
CASES += [(name, "6.12", RECORDS_6_12) for name in NAMES if recorded(name, RECORDS_6_12)]


@pytest.mark.parametrize(
    ("name", "release", "records"), CASES, ids=[f"{name}-{release}" for name, release, _ in CASES]
)
def test_a_figure_gives_its_record(name: str, release: str, records: Path, tmp_path: Path) -> None:
    holds = run_figures(RunOrder([name], tmp_path, release=release))
    known = recorded(name, records)
    assert holds or known, "a claim does not hold"
    results = release_folder(tmp_path, release) / "results"
    panels = [panel for panel in load_figures(name) if panel.name in known]
    differences = [compare_with_record(panel, results, records) for panel in panels]
    assert not any(differences), "\n".join(differences)
