# SPDX-License-Identifier: MIT OR Apache-2.0
"""Maps of latency in the report: of a known trace, of any rows, and in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen import CHROMIUM, DESKTOP, Seen, headless_browser, open_report
from steady_lab.errors import LabError
from steady_lab.pages.latency_map import (
    COLUMNS_MAX,
    LEVELS,
    ROWS_MAX,
    Columns,
    counted,
    latency_rows,
    level_of,
    level_starts,
    offset_columns,
    time_columns,
)
from steady_lab.pages.latency_picture import (
    BOTTOM_PX,
    LEFT_PX,
    NUMBER_PX,
    RIGHT_PX,
    TOP_PX,
    LatencyPicture,
)
from steady_lab.pages.report import render
from steady_lab.pages.trace_maps import GROUPS_MAX, IOS_MIN, TraceMaps, trace_maps
from steady_lab.pages.trace_rows import NUMBER_MAX, TracedIo, read_traced_ios
from steady_lab.pages.trace_section import TraceSection, read_trace_sections
from steady_lab.paths import BUILD, PROJECT

pytestmark = pytest.mark.reads("lab", "device")

TIMEOUT_S = 120
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
U64 = st.integers(0, NUMBER_MAX)
# Reads of 4 KiB every 100 ms that take 120 us, but for one.
READS, SLOW = 60, 40
SLOW_SECTOR = 5 << 11


def write_trace(folder: Path) -> tuple[Path, Path]:
    """Write a trace with known times, and return what steady writes of it: record and rows."""
    lines: list[tuple[int, str]] = []
    for n in range(READS):
        begin_us = 1_000_000_000 + n * 100_000
        took_us, sector = (30_000, SLOW_SECTOR) if n == SLOW else (120, n * 8)
        lines.append((begin_us, f"block_rq_issue: 8,0 R 4096 () {sector} + 8 none,0,0 [fio]"))
        lines.append((begin_us + took_us, f"block_rq_complete: 8,0 R () {sector} + 8 none,0,0 [0]"))
    text = [f"fio-77 [000] ..... {us / 1e6:.6f}: {event}" for us, event in lines]
    trace, record, rows = (folder / f"known <&>.{kind}" for kind in ("txt", "json", "csv"))
    trace.write_text("\n".join(["# tracer: nop", "#", *text, ""]), encoding="utf-8")
    command = [str(BUILD / "bin" / "steady"), "trace", "--json", "--csv", str(rows), str(trace)]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    record.write_bytes(done.stdout)
    return record, rows


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_trace(tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def section(written: tuple[Path, Path]) -> TraceSection:
    (made,) = read_trace_sections([written[0]], [written[1]])
    return made


@pytest.fixture(scope="module")
def seen(written: tuple[Path, Path]) -> Iterator[Seen]:
    record, rows = written
    command = [sys.executable, "-m", "steady_lab.cli", "report", "--build", str(record.parent)]
    command += ["--trace", str(record), "--trace-rows", str(rows)]
    subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    with headless_browser() as browser:
        yield open_report(browser, record.parent / "report" / "index.html", DESKTOP)


def ios(number: int, **others: Any) -> list[TracedIo]:
    usual: dict[str, Any] = {"total_ns": 100_000, "device": "sda", "op": "read"} | others
    return [TracedIo(at_ns=n * 1_000_000, sector=n * 8, **usual) for n in range(number)]


def pictures(of: list[TracedIo]) -> list[LatencyPicture]:
    return trace_maps(of, []).pictures


def test_a_request_is_in_the_cell_of_its_time_offset_and_latency(section: TraceSection) -> None:
    over_time, over_offsets = section.maps.pictures
    assert over_time.caption.startswith("60 reads of 8:0 over time: a column is 50 ms")
    assert over_offsets.caption.startswith("60 reads of 8:0 over offsets: a column is 64 KiB")
    for picture, place in ((over_time, "4 s"), (over_offsets, "5 MiB")):
        (cell,) = [cell for cell in picture.cells if cell.text.startswith(f"1 at {place}, ")]
        assert cell.text.endswith(", 25.1 ms to 31.6 ms")
        slow = next(mark for mark in picture.marks if mark.number == 1)
        assert cell.x <= slow.x <= cell.x + cell.width
        assert cell.y <= slow.y <= cell.y + cell.height
        assert sum(int(each.text.split()[0]) for each in picture.cells) == READS


def test_marks_have_the_numbers_of_the_worst_table(section: TraceSection) -> None:
    worst = section.tables[-1]
    assert worst.caption == "The longest"
    for picture in section.maps.pictures:
        marks = sorted(picture.marks, key=lambda mark: mark.number)
        assert [mark.text.split(":")[0] for mark in marks[:1]] == ["1. thread"]
        assert [f"{mark.number}." for mark in marks] == [row[0].split()[0] for row in worst.body]
        assert marks[0].text.endswith(worst.body[0][1])


@given(st.lists(st.tuples(U64, U64), min_size=1))
def test_cells_are_few_and_hold_every_io_whatever_its_values(points: list[tuple[int, int]]) -> None:
    values, times = [value for value, _ in points], [ns for _, ns in points]
    rows = latency_rows(times)
    for columns in (time_columns(max(values)), offset_columns(min(values), max(values))):
        counts = counted(points, columns, rows)
        assert counts.total() == len(points)
        assert columns.count <= COLUMNS_MAX and rows.count <= ROWS_MAX
        assert all(0 <= x < columns.count and 0 <= y < rows.count for x, y in counts)
        assert len(columns.ticks()) <= 12


@given(st.lists(st.builds(TracedIo, U64, U64, st.just("<sda>"), st.just("read"), U64), min_size=20))
def test_every_cell_and_tick_lies_on_the_map(of: list[TracedIo]) -> None:
    for picture in pictures(of):
        for cell in picture.cells:
            assert cell.width > 0 and cell.height > 0
            assert cell.x >= LEFT_PX and cell.x + cell.width <= RIGHT_PX + 0.1
            assert cell.y >= TOP_PX and cell.y + cell.height <= BOTTOM_PX + 0.1
        assert all(LEFT_PX <= tick.at <= RIGHT_PX for tick in picture.x_ticks)
        assert all(TOP_PX <= tick.at <= BOTTOM_PX for tick in picture.y_ticks)


def test_steps_of_columns_are_round() -> None:
    assert time_columns(9_999_999_999) == Columns(0, 100_000_000, 100, 1_000_000_000)
    assert offset_columns(5 << 30, (5 << 30) + (100 << 20)) == Columns(
        5 << 30, 1 << 20, 101, 16 << 20
    )


def test_fewer_than_20_ios_have_no_map() -> None:
    assert len(pictures(ios(IOS_MIN))) == 2
    few = trace_maps(ios(IOS_MIN - 1), [])
    assert (few.pictures, few.hidden) == ([], "1 with fewer than 20 I/Os")


def test_each_device_and_operation_has_its_maps_up_to_a_limit() -> None:
    of = [io for n in range(9) for io in ios(20 + n, device=f"sd{n}", op="write")]
    maps = trace_maps([*of, *ios(50, device="sd8")], [])
    assert len(maps.pictures) == 2 * GROUPS_MAX
    assert maps.hidden == "4 with fewer I/Os than those shown"
    assert [picture.caption.split(" over")[0] for picture in maps.pictures[-4::2]] == [
        "50 reads of sd8",
        "28 writes of sd8",
    ]


def test_few_counts_have_colours_as_far_apart_as_many() -> None:
    assert level_starts(1000) == [1, 3, 10, 32, 100, 316]
    assert [level_of(n, level_starts(1000)) for n in (1, 2, 3, 1000)] == [0, 0, 1, LEVELS - 1]
    assert [level_of(n, level_starts(2)) for n in (1, 2)] == [0, LEVELS - 1]
    assert level_of(1, level_starts(1)) == 0


def test_numbers_of_marks_at_one_time_stay_apart() -> None:
    of = ios(30)
    worst = [
        io._asdict() | {"call": "read", "bytes": 4096, "comm": "fio", "pid": 7} for io in of[-10:]
    ]
    for picture in trace_maps(of, worst).pictures:
        xs = [mark.number_x for mark in picture.marks]
        assert len(xs) == 10 and xs[-1] <= RIGHT_PX
        assert all(right - left >= NUMBER_PX for left, right in pairwise(xs))


def luminance(colour: str) -> float:
    parts = [int(part, 16) / 255 for part in re.findall("..", colour)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def test_colours_differ_from_the_paper_and_get_further_from_it() -> None:
    style = (PROJECT / "lab/steady_lab/pages/assets/report.css").read_text(encoding="utf-8")
    colours = re.findall(r"--heat\d: #(\w{6});", style)
    assert len(colours) == 2 * LEVELS
    for paper, own in (("ffffff", colours[:LEVELS]), ("161616", colours[LEVELS:])):
        lights = [luminance(colour) + 0.05 for colour in (paper, *own)]
        contrasts = [max(light / lights[0], lights[0] / light) for light in lights]
        assert contrasts == sorted(contrasts) and contrasts[1] >= 3


HEADER = "kind,at_ns,total_ns,call,op,device,sector\n"
ROW = {"at_ns": 1, "total_ns": 2, "device": "sda", "op": "read", "sector": 8}


def bad_json(**changed: object) -> str:
    return json.dumps(ROW | changed) + "\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (bad_json(total_ns=float("nan")), "line 1: total_ns is nan, not a whole number"),
        (bad_json(total_ns=-1), "line 1: total_ns is -1, not a whole number"),
        (bad_json(at_ns=1 << 64), "line 1: at_ns is 18446744073709551616, not a whole number"),
        (bad_json(at_ns=True), "line 1: at_ns is True"),
        (bad_json(at_ns=None), "line 1: at_ns is None"),
        (bad_json(device=["sda"]), "line 1: device is ['sda'], not a name"),
        (bad_json(sector={}), "line 1: sector is {}"),
        (bad_json() + "\n[1]\n", "line 3: not an object"),
        (bad_json() + '{"at_ns": 1}\n', "line 2: has no total_ns"),
        (bad_json() + '{"at_ns"', "line 2: not JSON"),
        ('{"a":' + "[" * 100_000, "line 1: not JSON"),
        ("not,ours\n", "line 1: has no at_ns"),
        ("not,ours\n1,2\n", "line 2: has no at_ns"),
        (HEADER + "io,1,NaN,read,read,sda,8\n", "line 2: total_ns is 'NaN'"),
        (HEADER + "io,1,٣,read,read,sda,8\n", "line 2: total_ns is '٣'"),
        (HEADER + f"io,1,{'9' * 5000},read,read,sda,8\n", "line 2: total_ns is '9999"),
        (HEADER + "io,1,2,read\n", "line 2: more or fewer values than names"),
        (HEADER + f"io,1,2,read,read,{'s' * 200_000},8\n", "field larger than"),
    ],
    ids=lambda text: text[:40].split("\n")[0],
)
def test_rows_that_cannot_be_are_refused_by_line(work: Path, content: str, complaint: str) -> None:
    file = work / "bad.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LabError, match="--trace-rows .*bad.csv: ") as raised:
        read_traced_ios(file)
    assert complaint in str(raised.value)
    assert "steady trace --csv" in str(raised.value)


@pytest.mark.parametrize("content", ["", "\n", HEADER], ids=["empty", "blank", "header"])
def test_rows_without_ios_have_no_map(work: Path, content: str) -> None:
    file = work / "none.csv"
    file.write_text(content, encoding="utf-8")
    assert read_traced_ios(file) == []


def test_text_that_is_not_utf_8_and_a_missing_file_are_refused(work: Path) -> None:
    file = work / "bad.csv"
    file.write_bytes(b"\xff\xfe")
    for path in (file, work / "none.csv"):
        with pytest.raises(LabError, match=path.name):
            read_traced_ios(path)


def test_csv_and_json_lines_have_the_same_ios(work: Path, written: tuple[Path, Path]) -> None:
    lines = work / "known.jsonl"
    trace = written[0].with_suffix(".txt")
    command = [str(BUILD / "bin" / "steady"), "trace", "--json-lines", str(lines), str(trace)]
    subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    found = read_traced_ios(lines)
    assert len(found) == READS
    assert found == read_traced_ios(written[1])


def test_calls_and_operations_without_a_sector_are_left_out(work: Path) -> None:
    file = work / "rows.jsonl"
    rows = [ROW, ROW | {"op": "fsync"}, ROW | {"sector": None}, ROW | {"device": None}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_traced_ios(file) == [TracedIo(**ROW)]  # type: ignore[arg-type]


def test_rows_without_their_record_or_of_another_trace_are_refused(
    work: Path, written: tuple[Path, Path]
) -> None:
    record, rows = written
    other = work / "other.csv"
    other.write_bytes(rows.read_bytes())
    with pytest.raises(LabError, match="no record is called other: give it with --trace"):
        read_trace_sections([record], [other])
    same_name = work / rows.name
    same_name.write_text(HEADER, encoding="utf-8")
    with pytest.raises(LabError, match="none of the longest reads and writes of the record"):
        read_trace_sections([record], [same_name])
    with pytest.raises(LabError, match="two files are called known <&>"):
        read_trace_sections([record], [rows, rows])


def test_a_hundred_thousand_ios_make_a_page_of_bounded_size(section: TraceSection) -> None:
    many = [
        TracedIo(n * 7_919_000, 1000 + n * n, "sda", "read", (n * 7919) % 10_000_019)
        for n in range(100_000)
    ]
    maps = trace_maps(many, [])
    assert all(len(picture.cells) <= COLUMNS_MAX * ROWS_MAX for picture in maps.pictures)
    without, own = (replace(section, maps=each) for each in (TraceMaps([], ""), maps))
    size = len(render([], traces=[own])) - len(render([], traces=[without]))
    assert size < 2 * COLUMNS_MAX * ROWS_MAX * 200


@needs_chromium
def test_a_map_is_drawn_named_and_its_marks_lead_to_the_table(seen: Seen) -> None:
    page = seen.page
    maps = page.locator(".map svg")
    assert maps.count() == 2
    assert "over offsets" in str(maps.last.get_attribute("aria-label"))
    assert maps.first.get_attribute("role") == "group"
    page.locator(".map a", has_text="1. thread").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('tr:target').rowIndex") == 1
    assert seen.console == []


@needs_chromium
def test_a_dark_system_gets_the_dark_colours(seen: Seen) -> None:
    colour = "getComputedStyle(document.querySelector('.map .heat0')).fill"
    assert seen.page.evaluate(colour) == "rgb(217, 114, 42)"
    seen.page.emulate_media(color_scheme="dark")
    assert seen.page.evaluate(colour) == "rgb(132, 87, 168)"
    seen.page.emulate_media(color_scheme="light", media="print")
    assert seen.page.evaluate(colour) == "rgb(217, 114, 42)"
