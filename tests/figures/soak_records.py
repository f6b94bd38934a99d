# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every committed record again, byte for byte; `make soak` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import EXPERIMENTS, load_figures
from steady_lab.pages.records import compare_with_record
from steady_lab.pages.results import RECORDS

NAMES = sorted(path.stem for path in (EXPERIMENTS / "figures").glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_gives_its_record(name: str, tmp_path: Path) -> None:
    panels = [panel for panel in load_figures(name) if (RECORDS / f"{panel.name}.csv").is_file()]
    if not panels:
        pytest.skip(f"{name} has no committed record")
    run_figures(RunOrder([name], tmp_path))
    results = tmp_path / "results"
    differences = [compare_with_record(panel, results, RECORDS) for panel in panels]
    assert not any(differences), "\n".join(differences)
