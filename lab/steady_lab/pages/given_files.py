# SPDX-License-Identifier: MIT OR Apache-2.0
"""JSON files that the command line gives to a page, each of which becomes a section."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError


def read_given(option: str, path: Path, schema: str, command: str) -> tuple[dict[str, Any], bytes]:
    """Return a file's object, which has this schema, and its bytes; raises LabError.

    `command` is what writes such a file.
    """
    try:
        content = path.read_bytes()
        document = json.loads(content)
    except OSError as error:
        raise LabError(f"{option} {path}: {error.strerror}") from error
    except ValueError as error:
        raise LabError(f"{option} {path}: not JSON: {error}") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise LabError(
            f"{option} {path}: its schema is {found!r}, not {schema!r}: write it with `{command}`"
        )
    return document, content


def refuse_same_names(option: str, names: Sequence[str], what: str) -> None:
    """Raise LabError if two sections would have one name, and so one place on the page."""
    for name in names:
        if names.count(name) > 1:
            raise LabError(f"{option}: two {what} are called {name}: rename one of them")
