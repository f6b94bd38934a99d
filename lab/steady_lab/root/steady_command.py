# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the `steady` command says: of a workload, for figures; of a model, for pages."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, COMMAND
from steady_lab.root.cargo import build_steady

STEADY = BUILD / "bin" / "steady"


def steady_json(*arguments: str) -> dict[str, Any]:
    """Return the JSON that a `steady` command prints; raises LabError with its words."""
    if not STEADY.is_file():
        build_steady()
    try:
        done = subprocess.run([STEADY, *arguments], capture_output=True, text=True)
    except OSError as error:
        raise LabError(
            f"{STEADY} cannot be run ({error.strerror}): run `{COMMAND} root steady`"
        ) from error
    if done.returncode != 0:
        called = " ".join(("steady", *arguments))
        raise LabError(f"{called}: status {done.returncode}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
