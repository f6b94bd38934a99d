# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of public reports in the guide is the output of `steady bound`."""

from reports import GUIDE, REPORTS, page
from steady_lab.toml_table import load_toml


def test_the_guide_has_the_table_of_now() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert page(text) == text
    assert len(load_toml(REPORTS)["report"]) == 13
