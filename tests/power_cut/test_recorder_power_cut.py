# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recording by the pool, cut anywhere: what was reported durable is there, whole and in order.

The recording goes round its segments more than once, so that every cut may find remains of an older
life. After mounting and `steady recover`, each file must pass the official reader.
"""

import itertools
import json
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import Recovered, Scenario, record, recover_all, recover_twice
from mcap.exceptions import McapError
from mcap.reader import make_reader
from releases import RELEASES
from steady_lab.devices.power_cut.card import Cut
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import WriteLog

CUTS = int(os.environ.get("STEADY_CUTS", "30"))
RECORD_BYTES = 1024
SEGMENTS = 4
LOSS_WINDOW_NS = 40_000_000
# The part of a segment of 512 KiB that is not records of 1 KiB: less than an eighth.
SEGMENT_RECORDS_MIN = 448

RECORDS = 3072
RECORD = f"""
"$STEADY" record --dir /run/mnt/kept --quiet --period 1ms --size {RECORD_BYTES} \
    --total {RECORDS}KiB --segments {SEGMENTS} --segment-size 512KiB --unit 16KiB \
    --loss-window 40ms --account-log account --out result.json
"""
# A block of 16 records is compressed to 4 KiB, so it takes more to go round.
COMPRESSED_RECORDS = 4 * RECORDS
RECOVER = '"$STEADY" recover --json /run/mnt/kept'


@dataclass(frozen=True)
class Account:
    """A line of the account log."""

    time_ns: int
    received: int
    written: int
    durable: int
    lost: int


def accounts_of(work: Path) -> list[Account]:
    lines = (work / "account").read_text().splitlines()
    return [Account(*map(int, line.split())) for line in lines]


def account_at(accounts: Iterable[Account], time_ns: int) -> Account:
    """The last line that was true by then."""
    nothing = Account(0, 0, 0, 0, 0)
    return max((line for line in accounts if line.time_ns <= time_ns), default=nothing,
               key=lambda line: line.time_ns)  # fmt: skip


def payload_noise() -> bytes:
    """What `steady record` fills its records with, behind their number (source.rs)."""
    word, noise = 0x9E37_79B9_7F4A_7C15, bytearray()
    for _ in range(RECORD_BYTES):
        word ^= word << 13 & 2**64 - 1
        word ^= word >> 7
        word ^= word << 17 & 2**64 - 1
        noise.append(word & 0xFF)
    return bytes(noise)


NOISE = payload_noise()


def numbers_in(file: Path) -> Iterator[int]:
    """The numbers of a file's records by the official reader, which checks every CRC; in order."""
    with file.open("rb") as stream:
        for _, _, message in make_reader(stream, validate_crcs=True).iter_messages():
            number = int.from_bytes(message.data[:8], "little")
            assert message.data[8:] == NOISE[8:], f"{file}: record {number}"
            yield number


def recovered_numbers(folder: Path) -> list[int]:
    """All records of a recording; each file must be in order, and so must the files.

    A segment without any record is no MCAP file, and `steady recover` says that there is none.
    """
    report = json.loads((folder / "recovered").read_text())
    named = [Path(file["path"]).name for file in report["files"] if file["contents"]]
    assert {file["after"] for file in report["files"]} <= {"finished", "blank", "unused"}
    files = [list(numbers_in(folder / "kept" / name)) for name in named]
    return list(itertools.chain.from_iterable(sorted(numbers for numbers in files if numbers)))


def faults(left: Recovered, accounts: list[Account]) -> Iterator[str]:
    """What must not be, after this cut."""
    if left.failed:
        yield f"failed: {left.failed}"
        return
    try:
        numbers = recovered_numbers(left.folder)
    except (McapError, ValueError) as error:
        yield f"a finished file does not pass the official reader: {error}"
        return
    if numbers != sorted(set(numbers)):
        yield "records are there twice, or not in their order"
    # A later one of several blocks in flight may have arrived.
    end = next((a + 1 for a, b in itertools.pairwise(numbers) if b != a + 1), None)
    end = end or (numbers[-1] + 1 if numbers else 0)
    durable = account_at(accounts, left.cut.time_ns).durable
    if end < durable:
        yield f"{durable} were durable, {end} are there"
    due = account_at(accounts, left.cut.time_ns - LOSS_WINDOW_NS).received
    if end < due:
        yield f"{due} were received before the loss window, {end} are there"
    # Only the segment that is being overwritten may lack its old records, and the one after it
    # when seven eighths are.
    kept = min(end, (SEGMENTS - 1) * SEGMENT_RECORDS_MIN - SEGMENT_RECORDS_MIN // 8)
    if len(numbers) < kept:
        yield f"only the last {len(numbers)} are kept, of {end}"


def all_faults(work: Path, log: WriteLog, recovered: Iterable[Recovered]) -> list[str]:
    accounts = accounts_of(work)
    found = []
    for left in recovered:
        cut = f"{left.cut.time_ns}:{left.cut.fate}:{left.cut.seed}"
        replay = f"steady-lab power-cut {log.path} --cut {cut} --image FILE"
        found += [f"{fault} ({replay})" for fault in faults(left, accounts)]
    return found


def recording(
    scenario: Scenario, work: Path, seed: int = 1, records: int = RECORDS
) -> tuple[WriteLog, list[Cut]]:
    log = record(scenario, work)
    accounts = accounts_of(work)
    assert accounts[-1].durable == accounts[-1].received == records
    return log, plan_cuts(log, CUTS, seed, accounts[0].time_ns, accounts[-1].time_ns)


@pytest.mark.parametrize("release", ["6.1"] if CUTS < 100 else RELEASES)
def test_what_the_pool_reports_durable_survives_any_cut(release: str, work: Path) -> None:
    scenario = Scenario(record=RECORD, recover=RECOVER, release=release)
    log, cuts = recording(scenario, work)
    assert all_faults(work, log, recover_all(scenario, work, log, cuts)) == []


@pytest.mark.parametrize("compression", ["zstd"] if CUTS < 100 else ["lz4", "zstd"])
def test_what_is_compressed_survives_any_cut(compression: str, work: Path) -> None:
    more = f"--total {COMPRESSED_RECORDS}KiB --compression {compression}"
    scenario = Scenario(record=RECORD.replace(f"--total {RECORDS}KiB", more), recover=RECOVER)
    log, cuts = recording(scenario, work, records=COMPRESSED_RECORDS)
    result = json.loads((work / "result.json").read_text())
    # It went round, and what went round is compressed.
    assert result["pool"]["rotations"]["count"] > SEGMENTS
    assert result["pool"]["device_bytes"] < COMPRESSED_RECORDS * RECORD_BYTES / 2
    assert all_faults(work, log, recover_all(scenario, work, log, cuts)) == []


def test_a_cut_during_recovery_does_no_harm(work: Path) -> None:
    scenario = Scenario(record=RECORD, recover=RECOVER)
    log, cuts = recording(scenario, work)
    few = random.Random(1).sample(cuts, k=max(5, CUTS // 10))
    few.sort(key=lambda cut: cut.time_ns)
    assert all_faults(work, log, recover_twice(scenario, work, log, few, again=5)) == []


def test_a_file_system_that_does_not_flush_is_caught(work: Path) -> None:
    """The proof that these tests can fail: fdatasync() returns, but the card got no flush."""
    scenario = Scenario(record=RECORD, recover=RECOVER, options="noatime,nobarrier")
    # With these cuts each kind of fault is there; not every draw of 30 leaves a damaged file.
    log, cuts = recording(scenario, work, seed=2)
    found = all_faults(work, log, recover_all(scenario, work, log, cuts))
    print(found)
    assert any("were durable" in fault for fault in found)
    # It tells of blocks that are missing although a later one says that they had been durable.
    assert any("failed: recover" in fault for fault in found)
