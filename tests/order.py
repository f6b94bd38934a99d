# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which worker runs which test, and when: the longest first.

The order leaves no worker with a long file at the end. Tests that build with cargo come last (the
mark `waits_for_cargo`), when the Rust tests no longer hold cargo's lock: a worker that waits runs
no guest. The tests of a file stay together, in order: they share the results of its fixtures. Those
of test_kernel.py stay together by boot. The session keeps the time of each test in the cache. Its
workers read a copy made at its start, as they must all find the same order.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from kernel_groups import group_of_test
from steady_lab.paths import BUILD, cache_dir
from xdist.scheduler import LoadScopeScheduling

KEPT = cache_dir() / "tests" / "durations.json"
COPY = BUILD / "tests" / "durations.json"
# Of a test that has not run yet.
UNKNOWN_S = 5.0


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Give a worker all tests of a group; xdist 3.8 has groups, too, but not with pytest 9."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def take_copy() -> None:
    """Called by the main process before the workers start."""
    COPY.parent.mkdir(parents=True, exist_ok=True)
    COPY.write_text(json.dumps(_read(KEPT)))


def longest_first(items: list[pytest.Item]) -> None:
    """Sort a session's tests by the time of their groups, those that wait for cargo last."""
    known = _read(COPY)
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[_group(item.nodeid)] += known.get(item.nodeid, UNKNOWN_S)
    late = {_group(item.nodeid) for item in items if item.get_closest_marker("waits_for_cargo")}

    def place(item: pytest.Item) -> tuple[bool, float, str]:
        group = _group(item.nodeid)
        return group in late, -seconds[group], group

    items.sort(key=place)


def keep(seconds: dict[str, float]) -> None:
    """Add the measurements of a session to the known times."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    scratch = KEPT.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(_read(KEPT) | seconds, indent=1, sort_keys=True) + "\n")
    scratch.replace(KEPT)


def _group(nodeid: str) -> str:
    return group_of_test(nodeid) or nodeid.partition("::")[0]


def _read(path: Path) -> dict[str, float]:
    try:
        found: dict[str, float] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found
