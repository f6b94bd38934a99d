# SPDX-License-Identifier: MIT OR Apache-2.0
"""Records of `steady trace` in the report: a real trace, analysed by steady, in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from seen import CHROMIUM, DESKTOP, PHONE, Seen, boxes, headless_browser, open_report
from steady_lab.errors import LabError
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.trace_section import read_trace_sections
from steady_lab.pages.trace_words import cause_texts, size_text, time_text
from steady_lab.paths import BUILD, PROJECT

pytestmark = pytest.mark.reads("lab", "device")

TIMEOUT_S = 120
TRACE = PROJECT / "device" / "trace" / "tests" / "traces" / "host-trace.txt"
BARS = ".plot .barlayer .trace.bars .point path"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What steady finds in a trace of this project's samples."""
    target = tmp_path_factory.mktemp("trace") / "host <&> trace.json"
    command = [str(BUILD / "bin" / "steady"), "trace", "--json", str(TRACE)]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    target.write_bytes(done.stdout)
    return target


@pytest.fixture(scope="module")
def document(record: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(record.read_bytes())
    return read


def report_of(record: Path) -> subprocess.CompletedProcess[str]:
    """Run `steady-lab report` on a record, in a build folder without figures."""
    command = [sys.executable, "-m", "steady_lab.cli", "report", "--build", str(record.parent)]
    return subprocess.run(
        [*command, "--trace", str(record)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def page_file(record: Path) -> Path:
    done = report_of(record)
    assert done.returncode == 0, done.stdout + done.stderr
    return record.parent / "report" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless_browser() as launched:
        yield launched


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def seen(browser: Browser, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Seen]:
    opened = open_report(browser, page_file, request.param)
    opened.page.locator(".plot").last.scroll_into_view_if_needed()
    opened.page.wait_for_selector(".plot >> nth=1 >> .legendpoints >> nth=0")
    yield opened
    opened.page.close()


@needs_chromium
def test_every_span_of_every_group_is_drawn(seen: Seen, document: dict[str, Any]) -> None:
    groups = len(document["ios"]) + len(document["requests"])
    longest = len(document["worst_ios"]) + len(document["worst_requests"])
    bars = boxes(seen.page, BARS)
    assert len(bars) == len(SPANS) * (2 * groups + longest)
    assert groups >= 3 and longest >= 3


@needs_chromium
def test_bars_of_a_group_add_up_to_its_mean(seen: Seen, document: dict[str, Any]) -> None:
    data = json.loads(seen.page.locator("script.plot-data").first.text_content() or "")
    sums: dict[int, float] = {}
    for trace in data["traces"]:
        if trace["type"] == "bar" and trace["xaxis"] == "x":
            for row, value in zip(trace["y"], trace["x"], strict=True):
                sums[row] = sums.get(row, 0) + value
    means_ns = [group["total"]["mean_ns"] for group in document["ios"] + document["requests"]]
    unit_ns = 1e6 if "(ms)" in data["panels"][0]["x"]["title"]["text"] else 1e3
    assert [sums[row] * unit_ns for row in sorted(sums)] == pytest.approx(means_ns, rel=1e-3)


@needs_chromium
def test_labels_stay_on_the_page(seen: Seen) -> None:
    width = seen.page.evaluate("document.documentElement.scrollWidth")
    assert width <= seen.page.viewport_size["width"]  # type: ignore[index]
    labels = boxes(seen.page, ".plot .textpoint text")
    assert labels and all(label["x"] + label["width"] <= width for label in labels)


@needs_chromium
def test_page_is_silent_and_text_is_escaped(seen: Seen, page_file: Path) -> None:
    assert seen.console == []
    assert seen.requests == [page_file.as_uri()]
    assert seen.page.text_content("h2") == "Trace host <&> trace"


@needs_chromium
def test_tables_show_each_group_with_all_percentiles(seen: Seen, document: dict[str, Any]) -> None:
    tables = seen.page.eval_on_selector_all(
        "table.values",
        "all => all.map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText)))",
    )
    heads = ["count", "at once", "mean", "p50", "p99", "p99.9", "max", "software"]
    assert tables[0][0][1:] == heads
    groups = document["ios"] + document["requests"] + document["flushes_and_discards"]
    for line, group in zip(tables[0][1:], groups, strict=True):
        assert line[1:3] == [str(group["count"]), str(group["at_once_max"])]
        assert line[7] == f"{group['total']['max_ns'] / 1000:.1f}"
    assert len(tables[2][1:]) == len(document["worst_ios"] + document["worst_requests"])


@needs_chromium
def test_the_record_can_be_downloaded(seen: Seen, record: Path) -> None:
    with seen.page.expect_download() as waiting:
        seen.page.click("a[download]")
    assert Path(waiting.value.path()).read_bytes() == record.read_bytes()


def test_causes_are_shown_in_the_words_of_the_record(work: Path, document: dict[str, Any]) -> None:
    file = work / "trace.json"
    document["worst_ios"][0]["causes"] = [{"text": "12.0 us as told"}, {"text": "3.0 us too"}]
    file.write_text(json.dumps(document), encoding="utf-8")
    (section,) = read_trace_sections([file])
    assert "12.0 us as told; 3.0 us too" in [row[-1] for row in section.tables[2].body]


def test_the_longest_have_the_same_numbers_in_plot_and_table(record: Path) -> None:
    (section,) = read_trace_sections([record])
    plotted = json.loads(section.worst_json or "")["traces"][-1]["text"]
    numbers = [f"{n}." for n in range(1, len(plotted) + 1)]
    assert [text.removeprefix("<b>").split()[0] for text in plotted] == numbers
    assert [row[0].split()[0] for row in section.tables[2].body] == numbers


def test_an_unknown_cause_is_said_to_be_unknown() -> None:
    worst = {"causes": [], "largest": {"ns": 1_500, "span": "post"}}
    assert cause_texts(worst) == ["cause unknown, 1.50 µs in post"]


def test_times_and_sizes_have_the_unit_that_fits() -> None:
    times = [time_text(ns) for ns in (0, 999, 1_500, 48_400, 12_340_000, 2_500_000_000)]
    assert times == ["0 ns", "999 ns", "1.50 µs", "48.4 µs", "12.3 ms", "2.50 s"]
    assert [size_text(n) for n in (512, 4096, 1536, 1 << 20)] == [
        "512 B",
        "4 KiB",
        "1.5 KiB",
        "1 MiB",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        ('{"schema": "steadyio.bench/1"}', "its schema is 'steadyio.bench/1'"),
        ('{"schema": "steadyio.trace/1", "ios": []}', "not a complete steadyio.trace/1 record"),
    ],
    ids=["no-json", "other-schema", "incomplete"],
)
def test_what_is_no_record_is_refused_by_name(work: Path, content: str, complaint: str) -> None:
    file = work / "bad.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LabError, match="bad.json") as raised:
        read_trace_sections([file])
    assert complaint in str(raised.value)


def test_a_record_that_is_not_there_is_refused(work: Path) -> None:
    done = report_of(work / "none.json")
    assert done.returncode != 0
    assert "none.json: No such file" in done.stderr
