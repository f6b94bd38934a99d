# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of `steady probe` has a row for each emulated card, without an error."""

from matrix import CELLS, PAGE, known, page


def test_the_page_has_each_card_without_an_error() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = known(text)
    assert page(text, found) == text
    assert list(found) == CELLS
    assert [str(cell) for cell, word in found.items() if "**" in word] == []
