# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a page carries within itself: data for its scripts, and files to download."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Download:
    """A file the page carries within itself."""

    name: str
    href: str


def script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element, whatever the strings hold."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def data_link(kind: str, content: bytes) -> str:
    """Return a link that holds the content itself; `kind` is its media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
