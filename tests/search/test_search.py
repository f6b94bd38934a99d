# SPDX-License-Identifier: MIT OR Apache-2.0
"""The search finds planted faults of each kind, and makes them small."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from steady_lab.errors import LabError
from steady_lab.figures.boot import Boot
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.executor import LocalPool
from steady_lab.kernels.build import LabKernel
from steady_lab.search.case import Case, draw, parse
from steady_lab.search.case_boot import CaseBoot
from steady_lab.search.finding import Finding
from steady_lab.search.search import Search
from steady_lab.search.sets import random_card
from steady_lab.search.shrink import smaller
from steady_lab.targets.uml import Uml
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

KNOBS = {"inflight_max": 1, "split_kib": 16, "background_wait_ms_max": 0}
CARD = random_card(11)
WRITER = {"class": "idle", "kib": 4, "blocks": 3}
WRITES = Case(seed=1, card=CARD, knobs=KNOBS, writers=(WRITER,))
FAST = copy.deepcopy(CARD)
FAST["read"] = {name: value // 4 for name, value in CARD["read"].items()}
TASK = {
    "name": "task0",
    "op": "read",
    "kib": 64,
    "level": 0,
    "ios": 1,
    "period_us": 100_000,
    "jitter_us": 0,
}
BACKGROUND = {"op": "read", "kib": 128}
TASKS = replace(WRITES, writers=(), tasks=(TASK,), background=BACKGROUND, seconds=2)
CACHED = copy.deepcopy(CARD)
CACHED["card"]["capacity_mib"] = 64
CACHED["cache"] = {"kib": 1024, "base_ns": 20_000, "per_kib_ns": 4_000}
RECORDING = {
    "period_us": 1000,
    "bytes": 1024,
    "records": 500,
    "segments": 3,
    "segment_kib": 512,
    "unit_kib": 16,
    "loss_window_ms": 40,
    "cut_ms": 0,
}
FORGED_BOOKS = """
file=/sys/kernel/debug/block/$disk/sched/counters
sed 's/^background completed .*/background completed 1/' $file >/run/counters
mount --bind /run/counters $file"""

PLANTED = {
    "data": replace(
        WRITES, planted="dd if=/dev/zero of=$STEADY_DEVICE bs=4k count=1 oflag=direct status=none"
    ),
    "log": replace(WRITES, planted="echo WARNING: planted >/dev/kmsg"),
    "books": replace(WRITES, planted=FORGED_BOOKS),
    "cut": replace(
        WRITES,
        planted="sed -i 's/ .*/ 0/' durable.0",
        cuts=({"permille": 1, "fate": "lost", "seed": 0},),
    ),
    "bound": replace(TASKS, profile=FAST),
    "ledger": replace(
        WRITES,
        writers=(),
        card=CACHED,
        recording=RECORDING | {"cut_ms": 300},
        planted="mount -o remount,nobarrier /run/mnt",
    ),
}


def search(kernel: LabKernel, work: Path) -> Search:
    return Search(Uml(kernel), LocalPool(2), work)


def test_what_is_planted_is_found(base_kernel: LabKernel, work: Path) -> None:
    boots = search(base_kernel, work).boot(PLANTED.values())
    for kind, boot in zip(PLANTED, boots, strict=True):
        assert kind in [finding.kind for finding in boot.findings], (kind, boot.findings)


def test_without_it_nothing_is_found(base_kernel: LabKernel, work: Path) -> None:
    cuts = PLANTED["cut"].cuts
    records = replace(PLANTED["ledger"], planted="")
    cases = [replace(WRITES, cuts=cuts), TASKS, records, replace(records, recording=RECORDING)]
    for boot in search(base_kernel, work).boot(cases):
        assert boot.findings == []


def test_a_real_case_is_shrunk_to_a_line_that_replays(base_kernel: LabKernel, work: Path) -> None:
    second = WRITER | {"kib": 16, "blocks": 2}
    large = replace(PLANTED["data"], writers=(WRITER, second))
    looking = search(base_kernel, work)
    looking.shrink_boots_max = 8
    (boot,) = looking.boot([large])
    found = looking.shrink(boot)
    assert len(found.case.writers) == 1
    (again,) = looking.boot([parse(found.case.line())])
    assert again.findings == found.findings


@dataclass(frozen=True)
class Pretended:
    """Boots nothing: each broken case is found."""

    found: Callable[[Case], bool]
    jobs: int = 2

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        for boot in boots:
            assert isinstance(boot, CaseBoot)
            if self.found(boot.case):
                boot.findings = [Finding("data", "pretended")]


def shrunk(kernel: LabKernel, work: Path, case: Case, found: Callable[[Case], bool]) -> Case:
    looking = Search(Uml(kernel), Pretended(found), work)
    looking.shrink_boots_max = 10_000
    (boot,) = looking.boot([case])
    return looking.shrink(boot).case


def test_only_what_matters_is_left(base_kernel: LabKernel, work: Path) -> None:
    case = next(case for case in map(draw, range(100)) if len(case.tasks) == 3)
    last = case.tasks[-1]["name"]
    small = shrunk(base_kernel, work, case, lambda one: last in [t["name"] for t in one.tasks])
    assert [task["name"] for task in small.tasks] == [last]
    assert (small.tasks[0]["kib"], small.tasks[0]["level"], small.seconds) == (4, 0, 1)
    assert small.knobs == {"inflight_max": 1, "split_kib": 0, "background_wait_ms_max": 0}
    assert not {"cache", "queue", "slow"} & set(small.card)


def test_a_number_that_matters_is_kept(base_kernel: LabKernel, work: Path) -> None:
    case = replace(WRITES, writers=(WRITER | {"blocks": 20},))

    def found(one: Case) -> bool:
        return any(writer["blocks"] >= 5 for writer in one.writers)

    assert 5 <= shrunk(base_kernel, work, case, found).writers[0]["blocks"] < 10


@pytest.mark.parametrize("seed", range(20))
def test_a_line_is_the_case(seed: int) -> None:
    assert parse(draw(seed).line()) == draw(seed)
    for case in smaller(draw(seed)):
        assert parse(case.line()) == case != draw(seed)


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"case":1,"other":2}', '{"case":1}'])
def test_what_is_no_case_is_refused(line: str) -> None:
    with pytest.raises(LabError, match="--replay"):
        parse(line)
