# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of public reports in docs/guides/deadlines.md: a card and a task each, and what `steady
bound` says of them. `build/venv/bin/python tests/bound/reports.py` writes it.

Needs build/bin/steady (make setup).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from steady_lab.paths import BUILD, PROJECT
from steady_lab.search.sets import toml
from steady_lab.toml_table import load_toml

GUIDE = PROJECT / "docs" / "guides" / "deadlines.md"
REPORTS = PROJECT / "docs" / "examples" / "reports.toml"
CARD = PROJECT / "experiments" / "devices" / "test-slow-sd.toml"
BEGIN, END = "<!-- reports: written by tests/bound/reports.py -->\n", "<!-- /reports -->"
HEAD = "| report | card | task | buffer | would it have helped? |\n"
# So rare that one job meets one pause at most.
PAUSE_KIB = 1 << 20
# By how much a bound is longer than the pause, at most.
STALL_MORE_MS = 7


def card_of(report: dict[str, Any]) -> dict[str, Any]:
    """The slow card, with the times of the report."""
    card = load_toml(CARD)
    stall_ms = report.get("stall_ms", 0)
    card["write"] |= {"pause_kib": PAUSE_KIB if stall_ms else 0, "pause_ns": stall_ms * 1_000_000}
    if "per_kib_us" in report:
        card["write"]["per_kib_ns"] = report["per_kib_us"] * 1_000
    return card


def tasks_of(report: dict[str, Any]) -> dict[str, Any]:
    task = report["task"]
    return {
        "schema": "steadyio.tasks/1",
        "name": "report",
        "k2": {"inflight_max": 1, "split_kib": 16, "max_sectors_kb": 512, "nr_requests": 64},
        "background": {"op": "read", "kib": 512},
        "task": [
            {"name": "task", "op": "write", "level": 0}
            | {"kib": task["kib"], "period_us": task["period_ms"] * 1_000}
        ],
    }


def bound(report: dict[str, Any]) -> dict[str, Any]:
    """The output of `steady bound` for the report's task."""
    with tempfile.TemporaryDirectory() as name:
        card, tasks = Path(name) / "card.toml", Path(name) / "tasks.toml"
        card.write_text(toml(card_of(report)), encoding="utf-8")
        tasks.write_text(toml(tasks_of(report)), encoding="utf-8")
        steady = str(BUILD / "bin" / "steady")
        command = [steady, "bound", str(card), str(tasks), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    (task,) = json.loads(done.stdout)["tasks"]
    found: dict[str, Any] = task
    return found


def row(report: dict[str, Any]) -> str:
    task, found = report["task"], bound(report)
    per_kib_us = report.get("per_kib_us", 0)
    stall = f"{1e6 / per_kib_us:.0f} KiB/s" if per_kib_us else f"pauses {report['stall_ms']:,} ms"
    assumed = " (assumed)" if report["rate"] == "assumed" else ""
    buffer = "no bound"
    if found["job"]:
        # The page's claims on each: no knob helps, and the bound is little more than the pause.
        assert found["mostly_stalls"]
        assert found["job"]["bound_ns"] < (report["stall_ms"] + STALL_MORE_MS) * 1_000_000
        buffer = f"{-(-found['buffer']['bytes'] // 1024):,} KiB"
    name = f"[{report['name']}]({report['link']})" if "link" in report else report["name"]
    cells = [
        f"{name}: {report['what']}",
        stall,
        f"{task['kib']} KiB per {task['period_ms']} ms{assumed}",
        buffer,
        report["helps"],
    ]
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    rows = [row(report) for report in load_toml(REPORTS)["report"]]
    return f"{HEAD}|{' --- |' * 5}\n{''.join(rows)}"


def page(text: str) -> str:
    """The guide with the table of now."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    GUIDE.write_text(page(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
