# SPDX-License-Identifier: MIT OR Apache-2.0
"""A rebuilt card holds, sector by sector, the allowed values after a cut at that moment."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from steady_lab.devices.power_cut.card import FATES, Cut, CutCard
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import (
    SECTOR_BYTES,
    Flags,
    Kind,
    WriteLog,
    WriteLogError,
)
from steady_lab.errors import LabError
from steady_lab.paths import GUEST_PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

SECTORS = 8
LATENCY_NS = 10
STEP_NS = 20


@dataclass
class LogWriter:
    """A log as the module writes it; the n-th operation takes place at n x STEP_NS."""

    text: bytes = struct.pack("<8sQII", b"EMMCLOG1", SECTORS, 4, 0)
    count: int = 0
    operations: list[tuple[Kind, Flags, int, int]] = field(default_factory=list)

    def add(self, kind: Kind, flags: int = 0, sector: int = 0, sectors: int = 0) -> None:
        data = content(self.count + 1) * sectors if kind is Kind.WRITE else b""
        at_ns = self.count * STEP_NS
        self.text += struct.pack(
            *("<IHHQQQQQII", 0x52434D45, kind, flags, self.count, sector, sectors),
            *(at_ns, at_ns + LATENCY_NS, len(data), 0),
        )
        self.text += data
        self.count += 1
        self.operations.append((kind, Flags(flags), sector, sectors))

    def open(self, folder: Path) -> WriteLog:
        path = folder / "log"
        path.write_bytes(self.text)
        return WriteLog(path)


def content(version: int) -> bytes:
    return bytes([version]) * SECTOR_BYTES


def cut_image(log: WriteLog, cut: Cut, folder: Path) -> list[bytes]:
    card = CutCard(log, folder / "stable")
    card.write_cut(cut, folder / "image")
    card.close()
    data = (folder / "image").read_bytes()
    return [data[at : at + SECTOR_BYTES] for at in range(0, len(data), SECTOR_BYTES)]


def allowed(writer: LogWriter, time_ns: int, sector: int) -> tuple[set[int], int, int]:
    """The values that the sector may have at a cut, its value on flash, and that of a read."""
    stable, cached, torn = 0, list[int](), set[int]()
    for number, (kind, flags, first, sectors) in enumerate(writer.operations):
        here = first <= sector < first + sectors
        version = number + 1 if kind is Kind.WRITE else 0
        if number * STEP_NS > time_ns:
            break
        if number * STEP_NS + LATENCY_NS > time_ns:
            torn |= {version} if here and kind in (Kind.WRITE, Kind.ZERO) else set()
            break
        if kind is Kind.POWER_OFF:
            cached.clear()
        if kind is Kind.FLUSH or (kind is Kind.WRITE and Flags.DRAINED in flags):
            stable, cached = (cached or [stable])[-1], []
        if here and kind is Kind.WRITE and Flags.CACHED in flags:
            cached.append(version)
        elif here and kind in (Kind.WRITE, Kind.ZERO):
            stable, cached = version, []
        elif here and kind is Kind.DISCARD:
            cached.clear()
    return {stable, *cached} | torn, stable, (cached or [stable])[-1]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from([*[Kind.WRITE] * 6, Kind.FLUSH, Kind.ZERO, Kind.DISCARD, Kind.POWER_OFF]),
        st.sampled_from([0, int(Flags.CACHED), int(Flags.CACHED | Flags.DRAINED)]),
        st.integers(0, SECTORS - 1),
        st.integers(1, SECTORS),
    ),
    min_size=1,
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(OPERATIONS, st.integers(0, 20 * STEP_NS), st.sampled_from(FATES), st.integers(0, 9))
def test_every_sector_holds_what_it_may(
    work: Path, operations: list[tuple[Kind, int, int, int]], time_ns: int, fate: str, seed: int
) -> None:
    writer = LogWriter()
    for kind, flags, sector, sectors in operations:
        if kind in (Kind.FLUSH, Kind.POWER_OFF):
            writer.add(kind)
        else:
            writer.add(kind, flags, sector, min(sectors, SECTORS - sector))
    image = cut_image(writer.open(work), Cut(time_ns, fate, seed), work)
    quiet = time_ns % STEP_NS >= LATENCY_NS
    for sector in range(SECTORS):
        may, stable, reads = allowed(writer, time_ns, sector)
        assert image[sector] in {content(version) for version in may}
        if quiet and fate == "lost":
            assert image[sector] == content(stable)
        if quiet and fate == "kept":
            assert image[sector] == content(reads)


def test_a_write_past_the_cache_is_not_undone_by_a_flush(work: Path) -> None:
    writer = LogWriter()
    writer.add(Kind.WRITE, Flags.CACHED, 0, 4)
    writer.add(Kind.WRITE, Flags.DURABLE, 1, 2)
    writer.add(Kind.FLUSH)
    image = cut_image(writer.open(work), Cut(10 * STEP_NS, "lost", 1), work)
    assert image[:4] == [content(version) for version in (1, 2, 2, 1)]


def test_a_write_under_way_is_torn_between_sectors(work: Path) -> None:
    writer = LogWriter()
    writer.add(Kind.WRITE, 0, 0, SECTORS)
    log = writer.open(work)
    images = {tuple(cut_image(log, Cut(1, "lost", seed), work)) for seed in range(50)}
    assert len(images) > 10
    assert {sector for image in images for sector in image} == {content(0), content(1)}


def test_a_log_without_its_end_is_read_as_far_as_it_goes(work: Path) -> None:
    writer = LogWriter()
    writer.add(Kind.WRITE, 0, 0, 1)
    writer.add(Kind.WRITE, 0, 1, 1)
    writer.text = writer.text[:-1]
    assert len(writer.open(work).records) == 1


@pytest.mark.parametrize("text", [b"", b"EMMCLOG", b"x" * 100])
def test_what_is_no_log_is_refused(text: bytes, work: Path) -> None:
    (work / "log").write_bytes(text)
    with pytest.raises(WriteLogError, match="log"):
        WriteLog(work / "log")


def test_damage_in_a_log_is_named(work: Path) -> None:
    writer = LogWriter()
    writer.add(Kind.WRITE, 0, 0, 1)
    writer.add(Kind.FLUSH)
    writer.text = writer.text.replace(b"EMCR", b"rust", 1)
    with pytest.raises(WriteLogError, match="damaged at byte 24"):
        writer.open(work)


def test_a_card_does_not_go_back(work: Path) -> None:
    writer = LogWriter()
    writer.add(Kind.FLUSH)
    card = CutCard(writer.open(work), work / "stable")
    card.advance(5)
    with pytest.raises(LabError, match="cut at 4 ns"):
        card.advance(4)


def test_cuts_are_during_and_after_writes_and_flushes(work: Path) -> None:
    writer = LogWriter()
    for number in range(200):
        writer.add(*((Kind.FLUSH,) if number % 4 == 3 else (Kind.WRITE, Flags.CACHED, 0, 1)))
    cuts = plan_cuts(writer.open(work), 40, 1, 0, 200 * STEP_NS)
    during = [cut for cut in cuts if cut.time_ns % STEP_NS == LATENCY_NS - 1]
    after = [cut for cut in cuts if cut.time_ns % STEP_NS == STEP_NS - 1]
    flushes = [cut for cut in cuts if cut.time_ns // STEP_NS % 4 == 3]
    assert (len(cuts), len(during), len(after), len(flushes)) == (40, 20, 20, 10)
    assert {cut.fate for cut in cuts} == set(FATES)


@pytest.mark.parametrize("queue_depth", [0, 8])
def test_the_emulated_card_holds_what_is_rebuilt_from_its_log(queue_depth: int, work: Path) -> None:
    result = uml().boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/power_cut/log_and_cut.sh", str(queue_depth)],
            work=work,
            environment={"STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel"},
        )
    )
    assert result.exit_status == 0, result.output
    lost_kib = int(result.output.split()[-1])
    assert lost_kib > 0
    log = WriteLog(work / "card.log")
    assert {record.kind for record in log.records} >= {Kind.WRITE, Kind.FLUSH, Kind.ZERO}
    # The guest's own power cut, when nothing is under way, is the fate "lost" at the log's end.
    card = CutCard(log, work / "stable.img")
    card.write_cut(Cut(log.records[-1].finish_ns, "lost", 1), work / "rebuilt.img")
    held = (work / "card.img").read_bytes()
    rebuilt = (work / "rebuilt.img").read_bytes()
    assert rebuilt == held.ljust(len(rebuilt), b"\0")
