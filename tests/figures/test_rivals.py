# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where another variant is better than k2's default, and that each such place has its reason."""

from __future__ import annotations

from typing import Any

import figure_sample
import pytest
from steady_lab.errors import LabError, SpecError
from steady_lab.figures.rivals import Better, better_places
from steady_lab.figures.rows import Measurements, Row
from steady_lab.figures.spec import Figure
from steady_lab.pages.rivals import rivals_markdown

OURS = (1_000_000, 50.0)  # p99 in ns, background in MiB/s


def figure(*rivals: dict[str, Any]) -> Figure:
    """Return the tiny figure at its first point, with k2's default in the place of k2."""
    raw, workload = figure_sample.figure_raw(), figure_sample.workload_raw()
    raw |= {"rival": list(rivals), "published": [], "check": []}
    raw["plot"] |= {"highlight": ["k2-440us"], "detail_point": 4}
    raw["summary"] = {"text": "Nothing."}
    raw["points"] = [4]
    workload["variant"][0]["name"] = "k2-440us"
    return figure_sample.figure(raw, workload)


def measured(p99_ns: int, mib_s: float) -> Measurements:
    """Return OURS, and these values of the rival."""
    cells = {"k2-440us": OURS, "k2-split4": (p99_ns, mib_s)}
    return Measurements(
        [
            Row("tiny", name, "4", of, "read", "4", 1, 1, 1, p99, p99, p99, p99, 9, throughput)
            for name, (p99, throughput) in cells.items()
            for of in ("rt", "bg")
        ]
    )


@pytest.mark.parametrize(
    ("p99_ns", "mib_s", "better"),
    [
        (1_000_000, 50.0, []),
        (990_000, 50.5, []),  # within 2 %: the same
        (2_000_000, 40.0, []),
        (500_000, 40.0, [Better.LATENCY]),
        (2_000_000, 60.0, [Better.BACKGROUND]),
        (500_000, 60.0, [Better.FREE]),
        (500_000, 50.0, [Better.FREE]),
        (1_000_000, 60.0, [Better.FREE]),
    ],
)
def test_a_rival_is_better_in_what(p99_ns: int, mib_s: float, better: list[Better]) -> None:
    free = better == [Better.FREE]
    reason = {"variants": ["k2-split4"], "points": [4], "reason": "It lies."}
    chosen = figure(reason) if free else figure()
    assert [place.better for place in better_places(chosen, measured(p99_ns, mib_s))] == better


def test_better_without_a_price_needs_a_reason() -> None:
    with pytest.raises(LabError, match=r"must say why it is better: \['k2-split4 at 4'\]"):
        better_places(figure(), measured(500_000, 60.0))


def test_a_reason_for_nothing_is_refused() -> None:
    idle = figure({"variants": ["k2-split4"], "reason": "It lies."})
    with pytest.raises(LabError, match="is not better: .*It lies"):
        better_places(idle, measured(2_000_000, 40.0))


def test_a_reason_names_variants_and_points_that_there_are() -> None:
    with pytest.raises(SpecError, match=r"variants = \['k3'\]: must be .*k2-440us, k2-split4"):
        figure({"variants": ["k3"], "reason": "None."})
    with pytest.raises(SpecError, match=r"points = \[5\]: must be .* out of 4"):
        figure({"variants": ["k2-split4"], "points": [5], "reason": "None."})


def test_the_table_shows_both_numbers_and_the_reason() -> None:
    chosen = figure({"variants": ["k2-split4"], "reason": "It lies."})
    text = rivals_markdown([(chosen, measured(500_000, 60.0))])
    assert "| 4 | 1.00 / 50.0 |  |  | k2, split_kib=4 0.50 / 60.0 [1] |" in text
    assert text.endswith("[1] It lies.")
