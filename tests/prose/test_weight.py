# SPDX-License-Identifier: MIT OR Apache-2.0
"""No document grows beyond a length that a reader finishes, and no page shows a rendered CSV."""

from __future__ import annotations

import subprocess

from steady_lab.paths import PROJECT

WORDS_MAX = 3500
# By the begin of the name.
SHORTER = {
    "ARCHITECTURE.md": 1850,
    "CONTRIBUTING.md": 600,
    "docs/devices.md": 2050,
    "docs/guides/": 1350,
    "docs/reference/chario.md": 2100,
    "docs/results/": 1200,
    "docs/reference/trace-rules.md": 1600,
}
# Longer, as a manual is, or a table in which a reader looks one thing up.
LONGER = {
    "docs/reference/k2.md": 3850,
    "docs/reference/steady-trace.md": 3550,
    "docs/results/papers.md": 3460,
}


def lengths() -> dict[str, int]:
    """Words of each tracked document but the log of changes, which a release cuts."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return {
        name: len((PROJECT / name).read_text(encoding="utf-8").split())
        for name in listed.stdout.splitlines()
        if name != "CHANGELOG.md"
    }


def limit(name: str) -> int:
    """Words that a document may have."""
    short = (words for begin, words in SHORTER.items() if name.startswith(begin))
    return LONGER.get(name, next(short, WORDS_MAX))


def test_no_document_is_longer_than_a_reader_finishes() -> None:
    found = lengths()
    assert len(found) > 40
    assert {name: words for name, words in found.items() if words > limit(name)} == {}
    assert LONGER.keys() <= found.keys()
