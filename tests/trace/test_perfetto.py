# SPDX-License-Identifier: MIT OR Apache-2.0
"""What steadyio writes for Perfetto, read by Perfetto: its messages, its SQL, its UI."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from perfetto_ui import PerfettoUi, headless_browser, perfetto_ui
from playwright.sync_api import Browser
from rust_examples import rust_example
from steady_lab.pages.screenshot import find_chromium
from steady_lab.paths import BUILD, PROJECT

pytestmark = pytest.mark.waits_for_cargo

RUN_TIMEOUT_S = 60
TRACE = PROJECT / "device" / "trace" / "tests" / "traces" / "host-trace.txt"
REQUESTS = 7
PAGE = PROJECT / "docs" / "reference" / "steady-trace-perfetto.md"
COMPLAINTS = "select name, idx, value from stats where value > 0 and severity != 'info'"
needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of device/trace/tests/all/perfetto/sample.rs as a file."""
    target = tmp_path_factory.mktemp("perfetto") / "sample.perfetto"
    subprocess.run([rust_example("perfetto_sample"), target], check=True, timeout=RUN_TIMEOUT_S)
    return target


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a real kernel, as steady writes it."""
    target = tmp_path_factory.mktemp("perfetto") / "real.perfetto"
    command = [str(BUILD / "bin" / "steady"), "trace", str(TRACE), "--perfetto", str(target)]
    subprocess.run(command, check=True, timeout=RUN_TIMEOUT_S, stdout=subprocess.DEVNULL)
    return target


@pytest.fixture(scope="module", params=["sample", "real"])
def trace(request: pytest.FixtureRequest) -> Trace:
    file: Path = request.getfixturevalue(request.param)
    return Trace.FromString(file.read_bytes())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless_browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def ui(browser: Browser, sample: Path) -> Iterator[PerfettoUi]:
    with perfetto_ui(browser, sample) as opened:
        yield opened


def messages_in(message: Message) -> Iterator[Message]:
    """Return a message and all within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from messages_in(inner)


def test_every_field_is_one_of_perfettos(trace: Trace) -> None:
    unknown = []
    for message in messages_in(trace):
        fields = UnknownFieldSet(message)
        unknown += [(type(message), fields[n].field_number) for n in range(len(fields))]
    assert unknown == []
    assert sum(1 for _ in messages_in(trace)) > 300


def test_tracks_are_described_before_they_are_used(trace: Trace) -> None:
    known: set[int] = set()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert not track.HasField("parent_uuid") or track.parent_uuid in known
            assert track.uuid not in known
            known.add(track.uuid)
        if packet.HasField("track_event"):
            assert packet.track_event.track_uuid in known


def test_slices_of_a_track_end_in_order(trace: Trace) -> None:
    open_slices: Counter[int] = Counter()
    for packet in trace.packet:
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            open_slices[event.track_uuid] -= 1
            assert open_slices[event.track_uuid] >= 0
    assert open_slices and not any(open_slices.values())


@needs_chromium
def test_perfetto_imports_it_without_complaint(ui: PerfettoUi) -> None:
    assert ui.rows(COMPLAINTS) == []
    assert ui.errors == []


@needs_chromium
def test_perfetto_imports_a_real_trace_without_complaint(browser: Browser, real: Path) -> None:
    record = [str(BUILD / "bin" / "steady"), "trace", str(TRACE), "--json"]
    document = json.loads(subprocess.check_output(record, timeout=RUN_TIMEOUT_S))
    with perfetto_ui(browser, real) as ui:
        assert ui.rows(COMPLAINTS) == []
        requests = "count(distinct extract_arg(arg_set_id, 'debug.request'))"
        ios = "count(extract_arg(arg_set_id, 'debug.io'))"
        counted = ui.rows(f"select {requests}, {ios} from slice")
        assert ui.errors == []
    of_ios = sum(group["count"] for group in document["ios"])
    assert counted == [(document["account"]["matched"], of_ios)]


@needs_chromium
def test_perfetto_shows_a_read_in_each_layer(ui: PerfettoUi) -> None:
    """The times are those of the trace's own clock, in ns."""
    rows = ui.rows(
        "select t.name, ts - trace_start(), dur from slice s join track t on t.id = track_id"
        " where s.name = 'read 64 KiB' order by ts"
    )
    assert rows == [
        ("submission (VFS)", 0, 2_000),
        ("block layer", 2_000, 7_000),
        ("driver", 9_000, 3_000),
        ("device", 12_000, 80_000),
        ("completion", 92_000, 7_000),
    ]
    assert ui.rows("select trace_start()") == [(5_000_000_000_000,)]


@needs_chromium
def test_perfetto_follows_each_flow_to_its_end(ui: PerfettoUi) -> None:
    """From the call to the completion; each request has a link to each of its slices."""
    layers = ui.rows(
        "with recursive way(id, track, request) as ("
        " select s.id, t.name, extract_arg(arg_set_id, 'debug.io') from slice s"
        "  join track t on t.id = track_id where s.name = 'pread64 64 KiB'"
        " union all select slice_in, t.name, extract_arg(s.arg_set_id, 'debug.request') from flow"
        "  join way on slice_out = way.id join slice s on s.id = slice_in"
        "  join track t on t.id = s.track_id)"
        " select track, request from way"
    )
    way = ["submission (VFS)", "block layer", "driver", "device", "completion"]
    assert layers == [("reader", 0), *((layer, 0) for layer in way)]
    ends = ui.rows("select count(distinct trace_id), count(*) from flow")
    slices = ui.rows(
        "select count(*) from slice where extract_arg(arg_set_id, 'debug.request') >= 0"
    )
    without_io = 2
    assert ends == [(REQUESTS, slices[0][0] - without_io)]


@needs_chromium
def test_perfetto_knows_threads_and_their_processes(ui: PerfettoUi) -> None:
    rows = ui.rows(
        "select tid, thread.name, pid, process.name from thread join process using (upid)"
        " where tid > 0 order by tid"
    )
    assert rows == [(1201, "reader", 1201, "reader"), (1202, "reader", 1202, "reader")]


@needs_chromium
def test_perfetto_finds_arguments_by_their_name(ui: PerfettoUi) -> None:
    rows = ui.rows(
        "select distinct extract_arg(arg_set_id, 'debug.sector'),"
        " extract_arg(arg_set_id, 'debug.bytes'), extract_arg(arg_set_id, 'debug.inode'),"
        " extract_arg(arg_set_id, 'debug.op'), extract_arg(arg_set_id, 'debug.error')"
        " from slice where extract_arg(arg_set_id, 'debug.origin') = 'readahead'"
    )
    assert rows == [(64, 4096, 12, "read sync readahead", -5)]


@needs_chromium
def test_perfetto_counts_what_is_in_flight(ui: PerfettoUi) -> None:
    rows = ui.rows(
        "select p.name, max(value) from counter c join track t on t.id = c.track_id"
        " join track p on p.id = t.parent_id where t.name = 'requests in flight'"
        " group by p.name order by p.name"
    )
    assert rows == [("device 8:16", 1), ("device mmcblk0", 4)]


@needs_chromium
def test_the_questions_of_the_reference_page_have_answers(ui: PerfettoUi) -> None:
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    questions = [question for block in blocks for question in block.split(";") if question.strip()]
    answers = [ui.rows(question) for question in questions]
    assert len(answers) == 2
    assert answers[0][0] == (4, "write 512 KiB", 90.0)
    assert ("readahead", 1, 0.069) in answers[1]


@needs_chromium
def test_the_ui_shows_one_row_per_layer_and_thread(ui: PerfettoUi, work: Path) -> None:
    ui.screenshot(work / "sample.png")
    titles = ui.page.locator(".pf-track__title-popup").all_text_contents()
    layers = ["submission (VFS)", "block layer", "driver", "device", "completion"]
    counters = ["requests queued or in flight", "requests in flight"]
    assert titles[titles.index("device 8:16") :] == [
        *("device 8:16", *counters, "block layer", "device"),
        *("device mmcblk0", *counters, *layers),
        *("reader 1201", "reader (1201)"),
        *("reader 1202", "reader (1202)"),
    ]
