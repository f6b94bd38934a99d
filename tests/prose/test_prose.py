# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the linter of English reads of a file, and when it fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prose import Finding, compare, help_parts, subcommands
from subjects import fault
from words import Part, parts_of

RUST = """// Two lines
// are one comment.
let a = "not one"; // A comment behind code.
fail("the message of an error: \\
      it goes on");
let url = "http://a/b"; /* A block
 * of two lines. */
"""
PYTHON = '''"""The docstring."""
# A comment.
x = "a message in words"
y = f"{x}: a message with a value"
'''


def lines(parts: Sequence[Part]) -> list[tuple[int, str]]:
    return [(part.line, " ".join(part.text.split())) for part in parts]


def test_comments_and_messages_of_rust_are_read() -> None:
    assert lines(list(parts_of("a.rs", RUST, messages=True))) == [
        (1, "Two lines are one comment."),
        (3, "A comment behind code."),
        (6, "A block of two lines."),
        (4, "the message of an error: it goes on"),
    ]


def test_docstrings_comments_and_messages_of_python_are_read() -> None:
    found = lines(list(parts_of("a.py", PYTHON, messages=True)))
    assert {text for _, text in found} == {
        "The docstring.",
        "A comment.",
        "a message in words",
        ": a message with a value",
    }


def test_messages_of_tests_are_not_read() -> None:
    assert "message" not in str(list(parts_of("a.rs", RUST, messages=False)))


def test_comments_of_shell_are_read_and_hashes_in_words_are_not() -> None:
    text = '#!/bin/sh\n# A comment.\necho "${a#b}" # And one behind.\n'
    found = lines(list(parts_of("a.sh", text, messages=True)))
    assert [text.strip() for _, text in found if text.strip()] == ["A comment.", "And one behind."]


def test_each_entry_of_a_help_text_is_a_paragraph() -> None:
    text = "Do this\n\nCommands:\n  one  Do one thing\n  two  Do\n       another\n\n"
    text += "Options:\n  -h  Help\n"
    assert [part.text for part in help_parts(text)] == [
        "Do this",
        "Commands:",
        "Do one thing",
        "Do\nanother",
        "Options:",
        "Help",
    ]
    assert subcommands(text) == ["one", "two"]


FOUND = [Finding("docs/a.md", 3, "too long"), Finding("docs/a.md", 5, "too long")]


def test_as_many_findings_as_are_allowed_pass() -> None:
    assert compare(FOUND, {"docs/a.md": 2}) == []


def test_one_finding_more_fails_and_is_shown() -> None:
    assert "docs/a.md:5: too long" in compare(FOUND, {"docs/a.md": 1})


def test_fewer_findings_must_be_written_down() -> None:
    assert "--update" in compare(FOUND, {"docs/a.md": 3})[0]


def test_nothing_is_allowed_in_the_readme() -> None:
    assert "never" in compare([], {"README.md": 0})[0]


@pytest.mark.parametrize(
    "subject",
    [
        "k2: Split writes at the boundary",
        "recorder, cli: Read `--out` once",
        "docs/k2.md: Fix a link",
    ],
)
def test_a_subject_in_the_imperative_passes(subject: str) -> None:
    assert fault(subject) == ""


@pytest.mark.parametrize(
    "subject",
    [
        "Split writes at the boundary",
        "k2: split writes",
        "k2: Splits writes",
        "k2: Splitting of writes",
        "k2: Split writes.",
        "k2: Split writes; merge reads",
        "k2: Split " + "writes " * 10,
    ],
)
def test_any_other_subject_fails(subject: str) -> None:
    assert fault(subject)
