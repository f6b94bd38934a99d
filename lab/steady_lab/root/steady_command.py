# SPDX-License-Identifier: MIT OR Apache-2.0
"""Output of the `steady` command: about a workload for figures, about a model for pages."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, COMMAND
from steady_lab.root.cargo import build_steady, build_steady_guest

STEADY = BUILD / "bin" / "steady"
STEADY_GUEST = BUILD / "bin" / "steady-guest"


def steady_json(*arguments: str) -> dict[str, Any]:
    """Return the JSON that a `steady` command prints; raises LabError with its words.

    `steady-guest` runs `bench`: the demo has no other program.
    """
    program, build = STEADY, build_steady
    if arguments[0] == "bench":
        program, build = STEADY_GUEST, build_steady_guest
    if not program.is_file():
        build()
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
    except OSError as error:
        raise LabError(
            f"{program} cannot be run ({error.strerror}): run `{COMMAND} root {program.name}`"
        ) from error
    if done.returncode != 0:
        called = " ".join(("steady", *arguments))
        raise LabError(f"{called}: status {done.returncode}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
