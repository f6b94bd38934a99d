# SPDX-License-Identifier: MIT OR Apache-2.0
"""Links between documents lead to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from steady_lab.paths import PROJECT

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
TEXT_OF_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    text = TEXT_OF_LINK.sub(r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    return {anchor(text) for text in HEADING.findall(CODE.sub("", document.read_text("utf-8")))}


def broken(document: Path) -> list[str]:
    """Return the links that lead nowhere; those into the web are not followed."""
    found = []
    for link in LINK.findall(CODE.sub("", document.read_text("utf-8"))):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, heading = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        has_heading = target.suffix != ".md" or not heading or heading in anchors(target)
        if not target.exists() or not has_heading:
            found.append(link)
    return found


def test_links_lead_to_files_and_headings() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    documents = [PROJECT / name for name in listed.stdout.splitlines()]
    assert len(documents) > 40
    found = {str(document.relative_to(PROJECT)): broken(document) for document in documents}
    assert {name: links for name, links in found.items() if links} == {}


def test_a_link_to_no_file_or_heading_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# A `knob`: one [word](x)\n", "utf-8")
    document = tmp_path / "a.md"
    document.write_text(
        "[1](b.md#a-knob-one-word) [2](b.md#other) [3](c.md) [4](#own)\n# Own", "utf-8"
    )
    assert broken(document) == ["b.md#other", "c.md"]
