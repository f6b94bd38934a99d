# SPDX-License-Identifier: MIT OR Apache-2.0
"""What must hold after a case, whatever it did: the invariants of the search."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steady_lab.devices.power_cut.card import Cut, CutCard
from steady_lab.devices.power_cut.write_log import Kind, WriteLog
from steady_lab.errors import LabError
from steady_lab.root.steady_command import STEADY
from steady_lab.search.case import Case
from steady_lab.search.finding import Finding
from steady_lab.search.guest import (
    COUNTERS,
    PROFILE,
    RECORD,
    REGION_KIB,
    TASKS,
    WRITE_LOG,
    WRONG,
    data_of,
)
from steady_lab.search.recording import judge_recording
from steady_lab.targets.target import BootError, BootResult
from steady_lab.targets.uml import VIRTUAL_START_NS


def judge(case: Case, folder: Path, outcome: BootResult | BootError) -> list[Finding]:
    """Return all broken invariants, found in the boot's work folder."""
    if isinstance(outcome, BootError):
        return [Finding("log", str(outcome))]
    if outcome.exit_status != 0:
        return [Finding("guest", f"status {outcome.exit_status}: {outcome.output[-500:].strip()}")]
    found = [*_data(folder), *_books(folder), *_cuts(case, folder), *_bounds(case, folder)]
    return [*found, *(judge_recording(case.recording, folder) if case.recording else ())]


def _data(folder: Path) -> Iterator[Finding]:
    for line in (folder / WRONG).read_text().splitlines():
        yield Finding("data", f"{line}: what was read back is not what was written")


def _books(folder: Path) -> Iterator[Finding]:
    """k2's counters with nothing queued or in flight."""
    counters = _counters((folder / COUNTERS).read_text())
    for kind, count in counters.items():
        if "inserted" in count and count["inserted"] != count["merged"] + count["completed"]:
            yield Finding(
                "books",
                f"{kind}: inserted {count['inserted']}, merged {count['merged']}, "
                f"completed {count['completed']}",
            )


def _counters(text: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"rt": {}, "background": {}}
    for line in text.splitlines():
        kind, name, value = line.split()[:3]
        found.setdefault(kind, {})[name] = int(value)
    return found


def _cuts(case: Case, folder: Path) -> Iterator[Finding]:
    """Data that was synced before a power cut is on the card after it."""
    if not case.cuts:
        return
    log = WriteLog(folder / WRITE_LOG)
    changes = [record for record in log.records if record.kind is not Kind.POWER_OFF]
    if not changes:
        return
    from_ns, to_ns = changes[0].arrived_ns, changes[-1].finish_ns
    cuts = [
        Cut(from_ns + (to_ns - from_ns) * cut["permille"] // 1000, cut["fate"], cut["seed"])
        for cut in case.cuts
    ]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        card, image = CutCard(log, Path(scratch) / "stable"), Path(scratch) / "image"
        for cut in sorted(cuts, key=lambda one: one.time_ns):
            card.write_cut(cut, image)
            yield from _lost(case, folder, cut, image)
        card.close()


def _lost(case: Case, folder: Path, cut: Cut, image: Path) -> Iterator[Finding]:
    with image.open("rb") as stream:
        for number, writer in enumerate(case.writers):
            data, size = data_of(case, number), writer["kib"] * 1024
            for line in (folder / f"durable.{number}").read_text().splitlines():
                block, synced = line.split()
                # The log has the monotonic clock, which began with the guest.
                synced_ns = int(synced) - VIRTUAL_START_NS
                if synced_ns > cut.time_ns:
                    continue
                stream.seek(number * REGION_KIB * 1024 + int(block) * size)
                if stream.read(size) != data[int(block) * size :][:size]:
                    yield Finding(
                        "cut",
                        f"writer {number} block {block} was synced at {synced_ns} ns, and is not "
                        f"on the card after a cut at {cut.time_ns} ns ({cut.fate})",
                    )


def _bounds(case: Case, folder: Path) -> Iterator[Finding]:
    """No request takes longer than the bound of `steady bound`."""
    if not case.tasks:
        return
    jobs = json.loads((folder / RECORD).read_text(encoding="utf-8"))["results"][0]["jobs"]
    for task, bound in zip(case.tasks, bounds(folder / PROFILE, folder / TASKS), strict=True):
        allowed = bound_of_an_io(task, bound)
        seen = jobs[task["name"]]
        if allowed and seen["count"] and seen["latency_ns"]["max"] > allowed["bound_ns"]:
            yield Finding(
                "bound",
                f"{task['name']}: {seen['latency_ns']['max']} ns, bound {allowed['bound_ns']} ns",
            )


def bounds(card: Path, tasks: Path) -> list[dict[str, Any]]:
    """Return each task's entry of `steady bound --json`."""
    found: list[dict[str, Any]] = bound_document(card, tasks)["tasks"]
    return found


def bound_document(card: Path, tasks: Path, *options: str) -> dict[str, Any]:
    """Return what `steady bound --json` prints, which ends with 3 if a task may miss."""
    done = subprocess.run(
        [STEADY, "bound", card, tasks, "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise LabError(f"steady bound {card} {tasks}: {done.stderr.strip()}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def bound_of_an_io(task: dict[str, Any], bound: dict[str, Any]) -> dict[str, int] | None:
    """Return what the latency of an I/O must keep: `steady bench` measures I/Os, and a late job
    from its time on; None if there is no bound."""
    job: dict[str, int] | None = bound["job"]
    if job and job["bound_ns"] <= 1000 * (task["period_us"] - 2 * task["jitter_us"]):
        return dict(bound["io"])
    return job
