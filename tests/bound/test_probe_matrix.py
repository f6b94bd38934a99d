# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of `steady probe` has a row for each emulated card, with no error that is not known."""

from matrix import CELLS, PAGE, WRONG, known, page


def test_the_page_has_each_card_with_only_known_errors() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = known(text)
    assert page(text, found) == text
    assert list(found) == CELLS
    assert {cell.card for cell, word in found.items() if "**" in word} <= set(WRONG)
