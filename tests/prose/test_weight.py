# SPDX-License-Identifier: MIT OR Apache-2.0
"""No document, nor all together, grows beyond a length that a reader finishes."""

from __future__ import annotations

import subprocess

from steady_lab.paths import PROJECT

# Of all documents together, and of each.
WORDS_TOGETHER_MAX = 80_000
WORDS_MAX = 3200
# By the begin of the name.
SHORTER = {
    "ARCHITECTURE.md": 1750,
    "CONTRIBUTING.md": 600,
    "docs/devices.md": 2000,
    "docs/guides/": 1300,
    "docs/reference/chario.md": 2050,
    "docs/results/": 1200,
    "docs/reference/trace-rules.md": 1500,
}
# Longer, as a manual is, or a table in which a reader looks one thing up.
LONGER = {
    "docs/reference/k2.md": 3750,
    "docs/results/papers.md": 3460,
}


def lengths() -> dict[str, int]:
    """Words of each tracked document, as `wc -w` counts them."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return {
        name: len((PROJECT / name).read_text(encoding="utf-8").split())
        for name in listed.stdout.splitlines()
    }


def limit(name: str) -> int:
    """Words that a document may have."""
    short = (words for begin, words in SHORTER.items() if name.startswith(begin))
    return LONGER.get(name, next(short, WORDS_MAX))


def test_no_document_is_longer_than_a_reader_finishes() -> None:
    found = lengths()
    # A release cuts it.
    del found["CHANGELOG.md"]
    assert len(found) > 40
    assert {name: words for name, words in found.items() if words > limit(name)} == {}
    assert LONGER.keys() <= found.keys()


def test_all_documents_together_are_no_longer_than_their_limit() -> None:
    assert sum(lengths().values()) <= WORDS_TOGETHER_MAX
