# SPDX-License-Identifier: MIT OR Apache-2.0
"""The fit of the emulated eMMC: reproducible, in the spec, in the record, and good enough."""

import dataclasses
from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.devices.fit import (
    DEVICE,
    FITTED,
    PUBLISHED,
    Cell,
    Timing,
    compare,
    fit,
    headline,
    load_published,
    mismatches,
    predict,
    rms,
    timing_of,
)
from steady_lab.devices.kinds import KINDS
from steady_lab.devices.spec import load_device
from steady_lab.devices.transfer_fit import load_transfers
from steady_lab.errors import SpecError
from steady_lab.pages.device_page import PART, RECORD, fit_tables
from steady_lab.pages.recorded_tables import read_tables, table_name

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")

SPEC = load_device(DEVICE)
CELLS = load_published(PUBLISHED)


def cell(rt_kib: int, bg_kib: int, pieces: int = 1, op: str = "read") -> Cell:
    return Cell("test", op, "random", rt_kib, pieces, bg_kib)


def test_the_spec_holds_what_the_fit_gives() -> None:
    assert mismatches(SPEC, CELLS) == []


def test_the_record_has_the_fit_of_the_spec() -> None:
    recorded = read_tables(RECORD)
    for table in fit_tables(SPEC, CELLS, load_transfers()):
        assert recorded[table_name(PART, table.caption)] == table


def test_the_keys_of_a_kind_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device", "keys", "nvme"]) == 0
    out = capsys.readouterr().out
    assert all(number.name in out for number in KINDS["nvme"].numbers)


@pytest.mark.parametrize(("op", "limit"), [("read", 0.08), ("write", 0.13)])
def test_the_fit_is_as_close_as_the_page_says(op: str, limit: float) -> None:
    figures = compare(timing_of(SPEC, op), [c for c in CELLS if c.op == op])
    assert len(figures) > 50
    assert rms(figures) < limit


def test_prediction_by_hand() -> None:
    """Two commands, 68 KiB, two jumps; nothing slow: 2 x 100 + 68 x 10 + 2 x 50 us."""
    timing = Timing(100, 10, 50, 0, 0, 0, 0)
    throughput, p99 = predict(timing, cell(64, 4))
    assert p99 == pytest.approx(0.98)
    assert throughput == pytest.approx(68 / 1024 / 0.98e-3)
    # A slow command costs 200 us more, 5 % of the time: the 99th percentile is a slow cycle.
    slow = dataclasses.replace(timing, slow=200, slow_share=0.05)
    assert predict(slow, cell(64, 4))[1] == pytest.approx(1.38)
    # Half a percent of the time is not seen by the 99th percentile.
    assert predict(dataclasses.replace(slow, slow_share=0.005), cell(64, 4))[1] == p99
    # A pause each 1 MiB hits 6.6 % of these cycles, each 16 MiB too few.
    pause = dataclasses.replace(timing, pause=1000, pause_kib=1024)
    assert predict(pause, cell(64, 4))[1] == pytest.approx(1.98)
    assert predict(dataclasses.replace(pause, pause_kib=16384), cell(64, 4))[1] == p99


@pytest.mark.parametrize("op", FITTED)
def test_the_fit_finds_the_timing_behind_made_up_figures(op: str) -> None:
    true = Timing(150, 12, 60, 300, 2500, 4096, 0.05)
    if op == "read":
        true = dataclasses.replace(true, pause=0, pause_kib=0)
    made = []
    for published in CELLS:
        if published.op == op:
            throughput, p99 = predict(true, published)
            made.append(
                dataclasses.replace(published, total_mib_s=throughput, rt_p99_ms=p99, left_out="")
            )
    found = fit(true, op, made)
    for key in FITTED[op]:
        assert getattr(found, key) == pytest.approx(getattr(true, key), rel=0.01), key


def test_the_device_shows_the_effect_that_splitting_is_about() -> None:
    """Published: K2 / split 5 times, max_sectors_kb / split 3.8 times."""
    k2, max_sectors = headline(timing_of(SPEC, "read"))
    assert k2 > 4.5
    assert max_sectors > 2.5


def test_bad_figures_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    whole = (
        'schema = "steadyio.published/1"\n[[cell]]\nwhere = "here"\nop = "read"\n'
        'pattern = "random"\nrt_kib = 4\nrt_pieces = 1\nbg_kib = 512\n'
    )
    path.write_text(whole)
    assert len(load_published(path)) == 1
    for good, bad, part in [
        ("published/1", "published/9", "schema"),
        ('"read"', '"seek"', "op = 'seek'"),
        ("rt_kib = 4", "rt_kib = 0", "must be a whole number"),
        ("rt_kib = 4", "rt_kib = 4\nrt_p99_ms = 0", "must be a number"),
        ("rt_kib = 4", "rt_kib = 4\ncolour = 1", "colour = 1: unknown key"),
    ]:
        path.write_text(whole.replace(good, bad))
        with pytest.raises(SpecError, match=part):
            load_published(path)
