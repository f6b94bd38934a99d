# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports of `steady tune` in the report: a real one, of the emulated card with a command queue."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from seen import CHROMIUM, DESKTOP, PHONE, Seen, boxes, headless_browser, open_report
from steady_lab.errors import LabError
from steady_lab.pages.tune_report import samples_needed
from steady_lab.pages.tune_section import TuneSection, read_tune_sections

pytestmark = pytest.mark.reads("lab")

TIMEOUT_S = 120
# --tail-max 50% --near 5 --knob inflight_max=1,2,4,8 --knob split_kib=4,8,16 --quantile 90
TUNED = Path(__file__).parent / "tuned.json"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    read: Document = json.loads(TUNED.read_bytes())
    return read


def written(work: Path, document: Document) -> Path:
    file = work / "changed.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def section(work: Path, document: Document) -> TuneSection:
    (made,) = read_tune_sections([written(work, document)])
    return made


def report_of(build: Path, *reports: Path) -> subprocess.CompletedProcess[str]:
    """Run `steady-lab report` on reports, in a build folder without figures."""
    command = [sys.executable, "-m", "steady_lab.cli", "report", "--build", str(build), "--tune"]
    return subprocess.run(
        [*command, *map(str, reports)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("tune")
    file = build / "card <&> load.json"
    file.write_bytes(TUNED.read_bytes())
    done = report_of(build, file)
    assert done.returncode == 0, done.stdout + done.stderr
    return build / "report" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless_browser() as launched:
        yield launched


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def seen(browser: Browser, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Seen]:
    opened = open_report(browser, page_file, request.param)
    opened.page.wait_for_selector(".plot .annotation-text >> nth=1")
    yield opened
    opened.page.close()


@needs_chromium
def test_every_measurement_is_a_point_with_its_interval(seen: Seen, document: Document) -> None:
    measured = len(document["points"]) + 1
    marks = boxes(seen.page, ".plot .scatterlayer .trace .points path")
    assert len(marks) == measured + 1, "and the ring around the pick"
    bars = boxes(seen.page, ".plot .scatterlayer .errorbar path")
    assert len(bars) == measured
    assert all(bar["height"] > 3 for bar in bars)


@needs_chromium
def test_every_point_has_its_label_where_there_is_room(seen: Seen, document: Document) -> None:
    labels = seen.page.locator(".plot .annotation-text").all_text_contents()
    names = [f"{p['knobs']['inflight_max']}, {p['knobs']['split_kib']}" for p in document["points"]]
    assert sorted(labels) == sorted(["labels: inflight_max, split_kib", "none", *names])


@needs_chromium
def test_labels_cover_neither_points_nor_each_other(
    browser: Browser, work: Path, document: Document
) -> None:
    for n, point in enumerate(document["points"]):
        point |= {"mib_s": 100.0 + 4 * n, "tail_ns": 518_144 + 9_000 * n}
    assert report_of(work, written(work, document)).returncode == 0
    crowded = open_report(browser, work / "report" / "index.html", DESKTOP)
    crowded.page.wait_for_selector(".plot .annotation-text >> nth=1")
    _, *labels = boxes(crowded.page, ".plot .annotation-text")  # the first is the panel's
    assert len(labels) >= 4
    marks = boxes(crowded.page, ".plot .scatterlayer .trace .points path")
    pairs = [*combinations(labels, 2), *((label, mark) for label in labels for mark in marks)]
    for one, other in pairs:
        wide = min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"])
        tops = one["y"] + one["height"], other["y"] + other["height"]
        high = min(tops) - max(one["y"], other["y"])
        # A line of text is drawn in a box higher than its letters.
        assert wide <= 1 or high <= 4, (one, other)
    crowded.page.close()


@needs_chromium
def test_page_is_silent_and_text_is_escaped(seen: Seen, page_file: Path) -> None:
    assert seen.console == []
    assert seen.requests == [page_file.as_uri()]
    assert seen.page.text_content("h2") == "Tuning card <&> load"
    assert seen.page.text_content("h1") == "Knobs chosen for a device and a load"


@needs_chromium
def test_table_shows_all_measurements_and_what_to_type(seen: Seen, document: Document) -> None:
    rows = seen.page.eval_on_selector_all(
        ".candidates tbody tr", "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    knobs = [point["knobs"] for point in document["points"]]
    names = [f"inflight_max={k['inflight_max']} split_kib={k['split_kib']}" for k in knobs]
    assert [row[0] for row in rows] == ["none", *names]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["inflight_max=4 split_kib=16"] == [
        *("358.4", "(656.4)", "(656.4)", "518.1", "456.7", "656.4", "656.4", "40", "148.30"),
        *("kept, uncertain", "pick, frontier"),
    ]
    typed = str(seen.page.text_content("pre.command")).splitlines()
    assert typed == document["pick"]["commands"]


@needs_chromium
def test_the_report_can_be_downloaded(seen: Seen) -> None:
    with seen.page.expect_download() as waiting:
        seen.page.click("a[download]")
    assert Path(waiting.value.path()).read_bytes() == TUNED.read_bytes()


def test_it_says_device_goal_and_pick(work: Path, document: Document) -> None:
    load, goal, found = section(work, document).sentences
    assert load.startswith("Device mmcblk0 (QUEUE, 256 MiB). Workload tune: real-time randread")
    assert "a p90 of at most 684.0 µs: 50 % of that without a scheduler (objective O1)" in goal
    assert found.startswith("6 of 12 candidates were measured. Picked: inflight_max=4 split_kib=16")
    assert found.endswith("148.30 MiB/s. Uncertain: its interval and the limit's overlap.")


def test_the_second_objective_has_its_own_words(work: Path, document: Document) -> None:
    document["goal"] |= {"best": "tail", "tail_ns_max": None, "mib_s_min": 100.0}
    document["goal"] |= {"limit_percent_of_none": 80.0, "quantile_percent": 99.9}
    assert section(work, document).sentences[1] == (
        "Wanted: the shortest p99.9, with at least 100.00 MiB/s: 80 % of that without a scheduler "
        "(objective O2)."
    )


def test_without_a_pick_what_comes_nearest_is_said(work: Path, document: Document) -> None:
    document["pick"] = None
    document["nearest"] = {"inflight_max": 1, "split_kib": 16}
    made = section(work, document)
    assert "No pick" in made.sentences[-1]
    assert "inflight_max=1 split_kib=16" in made.sentences[-1]
    assert made.commands == []
    (row,) = (row for row in made.rows if row.name == "inflight_max=1 split_kib=16")
    assert row.words[1] == "nearest"


def test_too_few_samples_and_failed_ios_are_said(work: Path, document: Document) -> None:
    document["points"][0] |= {"tail_ns_max": None, "errors": 3, "samples": 30}
    made = section(work, document)
    assert made.flaws == [
        "Too few samples for an interval of the p90: 1 measurements.",
        "3 I/Os failed.",
    ]
    (row,) = (row for row in made.rows if row.name == "inflight_max=1 split_kib=16")
    assert row.numbers[3:6] == ["(366.6)", "337.9", "?"]


def test_what_does_not_rise_is_said(work: Path, document: Document) -> None:
    falls = {"lower": {"inflight_max": 1, "split_kib": 16}}
    falls["upper"] = {"inflight_max": 2, "split_kib": 16}
    document["contradictions"] = [falls | {"quantity": "throughput"}]
    (flaw,) = section(work, document).flaws
    assert flaw.startswith("Not monotonic: inflight_max=1 split_kib=16 has more throughput than")


def test_samples_that_suffice_are_those_of_the_reference_page() -> None:
    assert [samples_needed(percent, 95) for percent in (99, 99.9, 99.99)] == [368, 3688, 36887]


CHANGES: dict[str, tuple[Any, str]] = {
    "schema": ("steadyio.bench/1", "its schema is 'steadyio.bench/1', not 'steadyio.tune/1'"),
    "goal.tail_ns_max": (None, "no limit"),
    "points": ([], "no points"),
    "points.1.tail_ns": ("soon", "'soon'"),
    "points.0.knobs.split_kib": (5, "not as `steady tune` writes it"),
    "record.results": ([], "not as `steady tune` writes it"),
}


def changed(document: Document, key: str, value: Any) -> Document:
    *path, last = key.split(".")
    inner: Any = document
    for step in path:
        inner = inner[int(step) if step.isdecimal() else step]
    inner[last] = value
    return document


@pytest.mark.parametrize("key", CHANGES)
def test_a_wrong_value_is_refused_by_file(work: Path, document: Document, key: str) -> None:
    value, complaint = CHANGES[key]
    with pytest.raises(LabError, match="--tune .*changed.json") as raised:
        section(work, changed(document, key, value))
    assert complaint in str(raised.value)


@pytest.mark.parametrize("key", ["goal", "knobs", "confidence", "points", "pick", "record"])
def test_a_missing_key_is_refused_by_name(work: Path, document: Document, key: str) -> None:
    del document[key]
    with pytest.raises(LabError, match=rf"changed.json: not as `steady tune` .*'{key}'"):
        section(work, document)


def test_reports_of_one_name_and_absent_ones_are_refused(work: Path, document: Document) -> None:
    file = written(work, document)
    done = report_of(work, file, file)
    assert done.returncode != 0
    assert "--tune: two reports are called changed: rename one of them" in done.stderr
    done = report_of(work, work / "none.json")
    assert done.returncode != 0
    assert "none.json: No such file" in done.stderr
