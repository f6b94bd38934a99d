# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data reported durable survives any power cut; a program that only claims it is caught."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from harness import Recovered, Scenario, record, recover_all, recover_twice
from kernel_scripts import build_helpers
from steady_lab.devices.power_cut.card import Cut
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import WriteLog
from steady_lab.paths import PROJECT

CUTS = int(os.environ.get("STEADY_CUTS", "20"))
RECORDS = 64
RECORD_BYTES = 4096


def writer(mode: str) -> Scenario:
    """A program that writes numbered records and reports when each is durable."""
    return Scenario(record=f'"$STEADY_TESTS_BIN/writer" {mode} /run/mnt/kept/data {RECORDS} marks')


def marks_of(work: Path) -> list[tuple[int, int]]:
    """The times, and how many records were reported durable by then."""
    lines = (work / "marks").read_text().splitlines()
    return [(int(time_ns), int(records)) for time_ns, records in map(str.split, lines)]


def record_at(number: int) -> bytes:
    """The same rule as in writer.c."""
    words = RECORD_BYTES // 8
    return struct.pack(f"<{words}Q", *(number << 16 | word + 1 for word in range(words)))


def recording(mode: str, work: Path) -> tuple[WriteLog, list[Cut]]:
    """Record, and choose the cuts."""
    build_helpers(PROJECT / "tests" / "power_cut")
    log = record(writer(mode), work)
    marks = marks_of(work)
    cuts = plan_cuts(log, CUTS, 1, marks[0][0], marks[-1][0])
    assert len(cuts) == CUTS
    return log, cuts


def lost_records(work: Path, log: WriteLog, recovered: Iterable[Recovered]) -> list[str]:
    """A line for each cut after which a durable record is not there."""
    marks = marks_of(work)
    lost = []
    for left in recovered:
        assert not left.failed, f"{left.cut}: {left.failed}"
        durable = max((n for time_ns, n in marks if time_ns <= left.cut.time_ns), default=0)
        wanted = b"".join(record_at(number) for number in range(durable))
        data = left.folder / "kept" / "data"
        found = data.read_bytes() if data.exists() else b""
        if found[: len(wanted)] != wanted:
            cut = f"{left.cut.time_ns}:{left.cut.fate}:{left.cut.seed}"
            lost.append(f"steady-lab power-cut {log.path} --cut {cut} --image FILE")
    return lost


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_what_is_flushed_survives(mode: str, work: Path) -> None:
    log, cuts = recording(mode, work)
    assert not lost_records(work, log, recover_all(writer(mode), work, log, cuts))


def test_what_is_flushed_survives_a_second_cut_during_recovery(work: Path) -> None:
    log, cuts = recording("append", work)
    twice = recover_twice(writer("append"), work, log, cuts[:: len(cuts) // 5], again=4)
    assert not lost_records(work, log, twice)


@pytest.mark.parametrize("mode", ["no-flush", "no-commit"])
def test_a_false_claim_is_caught(mode: str, work: Path) -> None:
    log, cuts = recording(mode, work)
    lost = lost_records(work, log, recover_all(writer(mode), work, log, cuts))
    print(f"{len(lost)} of {CUTS} cuts lose records: {lost[:1]}")
    assert len(lost) > CUTS // 4
