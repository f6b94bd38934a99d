# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page says how close the SSD model is to the paper on K2 and SSDs."""

import subprocess

from ssd_paper import LOAD, PAGE, written_page
from steady_lab.paths import PROJECT


def test_the_page_shows_what_the_model_gives() -> None:
    folder = PROJECT / "tests" / "devices"
    subprocess.run(["make", "-s", "-C", folder, f"../../{LOAD.relative_to(PROJECT)}"], check=True)
    page = PAGE.read_text(encoding="utf-8")
    assert written_page(page) == page
