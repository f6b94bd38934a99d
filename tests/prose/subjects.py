# SPDX-License-Identifier: MIT OR Apache-2.0
"""Subjects of commits: `area: Imperative summary`. Called by prose.py."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# The rule begins after this commit, and later at the last release.
FIRST = "5cf88d9e"
LENGTH_MAX = 72
SUBJECT = re.compile(r"[a-z0-9][\w.,/ -]*: [A-Z0-9`/-]\S*( .*)?[^.]")
# Verbs in another form than the imperative, as the first word.
NOT_IMPERATIVE = re.compile(r"\w+(?:ed|ing|s)")
# Imperatives that look as if they were not.
IMPERATIVE = {"Pass", "Bring", "Process", "Address", "Discuss", "Express", "Suppress", "Compress"}
IMPERATIVE |= {"Focus", "Feed", "Need", "Embed", "Speed", "Read", "Shed", "Miss", "Cross", "Access"}


def wrong_subjects(project: Path) -> list[str]:
    """Return a line per commit since the last release whose subject breaks the rule."""
    words = ["git", "log", "--no-merges", "--format=%h %s", f"{_since(project)}..HEAD"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        print("prose: no commit subjects are checked: the history is not in this clone")
        return []
    found = (line.partition(" ") for line in done.stdout.splitlines())
    return [f"commit {name}: {why}: {text}" for name, _, text in found if (why := fault(text))]


def _since(project: Path) -> str:
    words = ["git", "describe", "--tags", "--abbrev=0", "--match=v*"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    return done.stdout.strip() or FIRST


def fault(subject: str) -> str:
    """Return the fault of a subject, or nothing."""
    if len(subject) > LENGTH_MAX:
        return f"the subject has {len(subject)} characters, at most {LENGTH_MAX}"
    if ";" in subject:
        return "the subject names two changes"
    if not SUBJECT.fullmatch(subject):
        return "the subject is not `area: Imperative summary` without a full stop"
    first = subject.partition(": ")[2].split()[0]
    if NOT_IMPERATIVE.fullmatch(first) and first not in IMPERATIVE:
        return f"'{first}' is not imperative"
    return ""
