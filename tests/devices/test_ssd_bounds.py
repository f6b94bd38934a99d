# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page on the number in flight shows what the SSD model gives; two of its tables."""

import pytest
from ssd_bounds import PAGE, case_lines
from steady_lab.devices.ssd_load import build

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")


@pytest.mark.parametrize(
    ("state", "operation"), [("half full", "random read"), ("full", "random write")]
)
def test_the_page_shows_what_k2_and_fixed_numbers_give(state: str, operation: str) -> None:
    build()
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(case_lines(state, operation)) in page
