# SPDX-License-Identifier: MIT OR Apache-2.0
"""The matrix of devices and loads: its marks, and a heat map with the same bytes each time."""

from __future__ import annotations

import pytest
from steady_lab.figures.rivals import Better, Place
from steady_lab.pages.heat_map import Cell, heat_map, strength
from steady_lab.pages.matrix import Square

BETTER = (Place("load", "bfq", Better.FREE, 1.0, 9.0, "It is."),)


@pytest.mark.parametrize(
    ("ours_ms", "usual_ms", "better", "mark"),
    [(1.0, 5.0, (), ""), (1.0, 5.0, BETTER, "*"), (1.2, 1.0, BETTER, "*!"), (1.09, 1.0, (), "")],
)
def test_a_cell_is_marked(
    ours_ms: float, usual_ms: float, better: tuple[Place, ...], mark: str
) -> None:
    assert Square("card", "load", (ours_ms, 1.0), (usual_ms, 1.0), better).mark == mark


def test_colours_are_logarithmic_and_end_at_ten() -> None:
    assert strength(1.0) == 0.0
    assert strength(100.0) == -strength(0.001) == 1.0
    assert strength(2.0) == pytest.approx(-strength(0.5))


def test_a_map_has_every_cell_and_the_same_bytes_each_time() -> None:
    cells = [Cell(row, "load", 2.0, f"in {row}") for row in ("card", "drive")]
    made = [heat_map("A map", ["card", "drive"], ["load"], cells) for _ in range(2)]
    assert made[0] == made[1]
    assert all(text in made[0] for text in ("A map", "in card", "in drive", "load"))
