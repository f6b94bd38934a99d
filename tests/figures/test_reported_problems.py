# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports of problems: each panel has one, and its verdict follows from the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from steady_lab.errors import SpecError
from steady_lab.figures.rows import Measurements, Row
from steady_lab.figures.spec import Figure, load_figures
from steady_lab.pages.reports import IN_PART, NOT, REPORTS, SOLVED, load_reports, verdict

pytestmark = pytest.mark.reads("lab", "experiments", "docs")

FIGURES = {figure.name: figure for figure in load_figures("reports")}
ETCD = FIGURES["reports-etcd"]
NEEDS = next(report for report in load_reports() if report.panel == ETCD.name)


def measured(figure: Figure, k2_ms: float, usual_ms: float) -> Measurements:
    """Return a p99 of `k2_ms` for k2 and `usual_ms` for all else, which has no priority or has."""

    def row(variant: str, point: str) -> Row:
        ns = int((k2_ms if variant.startswith("k2") else usual_ms) * 1e6)
        return Row(figure.name, variant, point, "rt", "write", "4", 1, 1, 1, ns, ns, ns, ns, 9, 1.0)

    variants = [variant.name for variant in figure.workload.variants]
    return Measurements([row(v, str(p)) for v in variants for p in figure.shown_points])


def test_each_panel_has_one_report() -> None:
    assert {report.panel for report in load_reports()} == FIGURES.keys()


def test_each_panel_has_the_program_with_and_without_a_priority() -> None:
    for figure in FIGURES.values():
        point, default = figure.shown_points
        assert default == f"{point}, no priority"


@pytest.mark.parametrize(
    ("k2_ms", "usual_ms", "expected"),
    [
        (9.0, 11.0, SOLVED),
        (10.0, 400.0, SOLVED),
        (11.0, 400.0, IN_PART),
        (200.0, 400.0, IN_PART),
        (201.0, 400.0, NOT),
        (5.0, 9.0, NOT),  # the usual scheduler is good enough, and k2 not twice as good
        (500.0, 400.0, NOT),
    ],
)
def test_the_verdict_follows_from_the_numbers(k2_ms: float, usual_ms: float, expected: str) -> None:
    needs = replace(NEEDS, statistic="p99_ms", limit_ms=10.0)
    assert verdict(needs, ETCD, measured(ETCD, k2_ms, usual_ms)) == expected


def test_bad_reports_are_refused(tmp_path: Path) -> None:
    path, text = tmp_path / "reports.toml", REPORTS.read_text(encoding="utf-8")
    path.write_text(text)
    assert len(load_reports(path)) == len(FIGURES)
    for good, bad, part in [
        ("https://", "http://", "an https:// address"),
        ('"p99_ms"', '"mean"', "statistic"),
        ("limit_ms = 10\n", "limit_ms = -1\n", "limit_ms"),
        ("reports-k3s", "reports-etcd", "each panel once"),
    ]:
        path.write_text(text.replace(good, bad))
        with pytest.raises(SpecError, match=part):
            load_reports(path)
