# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `steady trace --keep` recorded, request by request.

device/trace/examples/trace_requests.rs reads it.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rust_examples import rust_example
from stays import Found, Stay

RUN_TIMEOUT_S = 60
SECTOR_BYTES = 512
QUEUED, ISSUED, COMPLETED = 0, 3, 6


@dataclass(frozen=True)
class Kept:
    """Requests, I/Os and account, as that program prints them; times are in ns."""

    requests: list[dict[str, Any]]
    ios: list[dict[str, Any]]
    account: dict[str, Any]

    def found(self, dev: str) -> list[Found]:
        """Return the requests of one device (MAJOR:MINOR), as blktrace's are compared with them."""
        return [_found(request) for request in self.requests if request["dev"] == dev]


def read_kept(folder: Path) -> Kept:
    """Follow the events in a folder; raises CalledProcessError."""
    command = [rust_example("trace_requests"), folder]
    done = subprocess.run(command, check=True, timeout=RUN_TIMEOUT_S, stdout=subprocess.PIPE)
    kinds: dict[str, list[dict[str, Any]]] = {"request": [], "io": [], "account": []}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        kinds[one["kind"]].append(one)
    return Kept(kinds["request"], kinds["io"], kinds["account"][0])


def _found(request: dict[str, Any]) -> Found:
    marks = request["marks_ns"]
    stays = [
        Stay(one["sector"], one["bytes"] // SECTOR_BYTES, one["issued_ns"], one["ended_ns"])
        for one in request["pieces"]
        if one["bytes"]
    ]
    if not stays:
        sectors = request["bytes"] // SECTOR_BYTES
        issued_ns = max([marks[ISSUED], *(one["issued_ns"] for one in request["pieces"])])
        stays = [Stay(request["sector"], sectors, issued_ns, marks[COMPLETED])]
    return Found(marks[QUEUED], tuple(stays))
