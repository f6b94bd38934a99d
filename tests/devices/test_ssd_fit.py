# SPDX-License-Identifier: MIT OR Apache-2.0
"""The fit of the SSD model: its search, its published values, its spec, and the page."""

from pathlib import Path

import pytest
from steady_lab.devices.spec import load_device
from steady_lab.devices.ssd_fit import (
    FREE,
    Free,
    Said,
    errors,
    load_published,
    mismatches,
    search,
    with_values,
)
from steady_lab.devices.ssd_load import SPEC, build, run_load
from steady_lab.errors import LabError, SpecError
from steady_lab.pages.device_page import RECORD
from steady_lab.pages.recorded_tables import read_tables, table_name
from steady_lab.pages.ssd_page import PART, committed_tables

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")

NONE_READS = ("half full", "sequential read", 0)


@pytest.mark.nightly("a change of an SSD that test_ssd_bounds.py does not show")
def test_the_record_has_what_the_drives_give() -> None:
    build()
    recorded = read_tables(RECORD)
    for table in committed_tables(load_published()):
        assert recorded[table_name(PART, table.caption)] == table


@pytest.mark.parametrize("state", SPEC)
def test_what_follows_from_a_printed_throughput_does_so_in_the_specs(state: str) -> None:
    drive = load_device(SPEC[state]).values
    values = tuple(drive[one.param] for one in FREE)
    assert with_values(drive, values) == drive


def test_the_search_finds_a_minimum_and_stays_in_its_ranges() -> None:
    free = (Free("a", 50, 0, 100, 16, 1), Free("b", 5, 2, 9, 4, 1))
    asked: list[tuple[int, ...]] = []

    def error(values: tuple[int, ...], enough: float) -> float:
        asked.append(values)
        return 1 + (values[0] - 31) ** 2 + (values[1] - 9) ** 2

    assert search(free, error, lambda *_: None) == (31, 9)
    assert len(asked) == len(set(asked)) < 40
    assert all(one.low <= x <= one.high for v in asked for one, x in zip(free, v, strict=True))


def test_an_error_of_one_is_what_is_allowed_and_a_statement_that_fails_costs_more() -> None:
    published = load_published()
    met = {"mb_s": 720.0, "p999_us": 1237.0}
    assert errors(published, NONE_READS, met) == [0, 0]
    far = errors(published, NONE_READS, {"mb_s": 792.0, "p999_us": 1237 / 1.5})
    assert far == [pytest.approx(1), pytest.approx(1)]
    case = ("half full", "sequential read", 8)
    assert errors(published, case, {"mb_s": 359.0, "p999_us": 618.0}) == []
    (failed,) = errors(published, case, {"mb_s": 361.0, "p999_us": 618.0})
    assert 1 < failed < 1.1


def test_all_statements_of_section_5_are_there() -> None:
    said = load_published().said
    assert len(set(said)) == 12
    assert Said("sequential read", 16, "p999_us", ">", 618.5).holds(619)
    assert not Said("sequential read", 16, "p999_us", ">", 618.5).holds(618.5)


def test_the_tail_of_writes_in_order_is_not_determined_by_their_throughput() -> None:
    """Why writes are not fitted: erases fall between the real-time process's requests by chance."""
    build()
    drive = load_device(SPEC["half full"]).values
    longer = {**drive, "write_command_ns": drive["write_command_ns"] + 30}
    for bound in ("bound=2", "bound=8"):
        before, after = (run_load(d, "write=1", "sequential=1", bound) for d in (drive, longer))
        assert after["mb_s"] == pytest.approx(before["mb_s"], rel=0.005)
        ratio = after["p999_us"] / before["p999_us"]
        assert max(ratio, 1 / ratio) > 1.5


def test_what_differs_is_named() -> None:
    assert mismatches({"read_lsb_ns": 1}, {"read_lsb_ns": 2, "other": 3}) == [
        "read_lsb_ns = 2, fitted 1"
    ]


def test_the_load_says_what_it_does_not_take() -> None:
    build()
    with pytest.raises(LabError, match="colour=1: must be NAME=NUMBER"):
        run_load({}, "colour=1")


def test_bad_values_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    whole = (
        'schema = "steadyio.published-bounds/1"\n[[point]]\nwhere = "4a"\ndrive = "full"\n'
        'operation = "random read"\nbound = 1\nmb_s = [1, 2]\n'
    )
    path.write_text(whole)
    assert load_published(path).points[0].mb_s == (1, 2)
    for good, bad, part in [
        ("bounds/1", "bounds/9", "schema"),
        ('"full"', '"empty"', "drive = 'empty': must be one of half full, full"),
        ('"random read"', '"erase"', "operation = 'erase'"),
        ("[1, 2]", "[2, 1]", "mb_s = .*: must be two numbers, the smaller first"),
        ("bound = 1", "bound = 1\ncolour = 1", "colour = 1: unknown key"),
    ]:
        path.write_text(whole.replace(good, bad))
        with pytest.raises(SpecError, match=part):
            load_published(path)
