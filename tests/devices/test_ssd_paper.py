# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page says how close the SSD model is to the paper on K2 and SSDs."""

from ssd_load import build
from ssd_paper import PAGE, written_page


def test_the_page_shows_what_the_model_gives() -> None:
    build()
    page = PAGE.read_text(encoding="utf-8")
    assert written_page(page) == page
