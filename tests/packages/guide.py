# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands of docs/guides/install.md, as its readers type them."""

from __future__ import annotations

import re

from steady_lab.paths import PROJECT

GUIDE = PROJECT / "docs" / "guides" / "install.md"


def commands(heading: str, starting: str = "", disk: str = "mmcblk0") -> str:
    """The blocks of a section that are marked `sh`, as one script that ends at a failure.

    Of them, only lines `starting` so, for the reader's own `disk`.
    """
    sections = re.split(r"^## +", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(f"{heading}\n"))
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    lines = [line for line in "".join(blocks).splitlines() if line.startswith(starting)]
    assert lines, f"{GUIDE}: no command below {heading!r}"
    return "\n".join(["set -e", *lines, ""]).replace("mmcblk0", disk)
