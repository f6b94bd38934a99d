# SPDX-License-Identifier: MIT OR Apache-2.0
"""The zoo's devices give the published values of their sources, and name the sources."""

from __future__ import annotations

import re

import pytest
from steady_lab.devices.spec import load_device
from steady_lab.figures.rows import read_csv
from steady_lab.figures.spec import Figure, load_figures
from steady_lab.pages.results import RECORDS
from steady_lab.paths import PROJECT

pytestmark = pytest.mark.reads("lab", "experiments", "docs")

ALONE = load_figures("zoo-alone")
ERROR_MAX = 0.10  # of a throughput
PERCENTILE_ERROR_MAX = 0.30


@pytest.mark.parametrize("figure", ALONE, ids=lambda figure: figure.name)
def test_a_device_is_as_fast_as_published_or_says_why_not(figure: Figure) -> None:
    measured = read_csv(RECORDS / f"{figure.name}.csv")
    assert len(figure.published) >= 2
    for published in figure.published:
        error = published.cell.evaluate(measured) / published.value - 1
        allowed = PERCENTILE_ERROR_MAX if published.cell.metric.is_latency else ERROR_MAX
        if published.reason:
            assert abs(error) > allowed, f"{published.cell.point}: needs no reason"
        else:
            assert abs(error) <= allowed, f"{published.cell.point}: {error:+.0%}"


@pytest.mark.parametrize("figure", ALONE, ids=lambda figure: figure.name)
def test_a_spec_names_its_source(figure: Figure) -> None:
    spec = load_device(figure.device_file)
    assert re.search(r"https://|cdrinfo\.com", spec.source)


def test_the_page_lists_every_device() -> None:
    page = (PROJECT / "docs" / "devices.md").read_text(encoding="utf-8")
    assert [f.name for f in ALONE if f"`{f.device_file.stem}`" not in page] == []
