# SPDX-License-Identifier: MIT OR Apache-2.0
"""A computed part of a hand-written page, between markers that name the command which writes it."""

from __future__ import annotations

from steady_lab.errors import LabError


def with_part(page: str, name: str, command: str, part: str) -> str:
    """Return the page with one part rewritten; raises LabError if its markers are missing."""
    begin, end = f"<!-- {name}: written by `{command}` -->", f"<!-- /{name} -->"
    head, found, rest = page.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found or not found_end:
        raise LabError(f"the page has lost its markers {begin!r} and {end!r}")
    return f"{head}{begin}\n\n{part}\n{end}{tail}"
