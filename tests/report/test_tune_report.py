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
from steady_lab.pages.tune_candidates import all_candidates
from steady_lab.pages.tune_report import Goal, TuneReport, read_tune_report
from steady_lab.pages.tune_section import TuneSection, read_tune_sections
from steady_lab.pages.tune_words import goal_text, samples_needed

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


def read(work: Path, document: Document) -> TuneReport:
    return read_tune_report(written(work, document))[0]


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
def test_table_shows_all_candidates_and_what_to_type(seen: Seen, document: Document) -> None:
    rows = seen.page.eval_on_selector_all(
        ".candidates tbody tr", "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    names = [f"inflight_max={a} split_kib={b}" for a in (1, 2, 4, 8) for b in (4, 8, 16)]
    assert [row[0] for row in rows] == ["none", *names]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["inflight_max=4 split_kib=16"] == [
        *("358.4", "518.1", "(656.4)", "(656.4)", "656.4", "456.7", "656.4", "40", "yes", "148.30"),
        *("kept, uncertain", "pick, frontier"),
    ]
    assert by_name["inflight_max=8 split_kib=4"] == [
        "not measured: below inflight_max=8 split_kib=8, which keeps the limit"
    ]
    typed = str(seen.page.text_content("pre.command")).splitlines()
    assert typed == document["pick"]["commands"]


@needs_chromium
def test_the_report_can_be_downloaded(seen: Seen) -> None:
    with seen.page.expect_download() as waiting:
        seen.page.click("a[download]")
    assert Path(waiting.value.path()).read_bytes() == TUNED.read_bytes()


def test_it_says_device_goal_runs_and_pick(work: Path, document: Document) -> None:
    load, goal, runs, pick = section(work, document).sentences
    assert load.startswith("Device mmcblk0 (QUEUE, 256 MiB). Workload tune: real-time randread")
    assert "a p90 of at most 684.0 µs: 50 % of that without a scheduler (objective O1, α" in goal
    assert runs == "6 of 12 candidates measured, in 7 runs, one of them without a scheduler."
    assert pick.startswith("Picked: inflight_max=4 split_kib=16, with a p90 of 518.1 µs")
    assert pick.endswith("Uncertain: its interval and that of the limit overlap.")


def test_the_second_objective_has_its_own_words() -> None:
    goal = Goal("tail", 80.0, None, 100.0, 99.9, 0.0)
    assert goal_text(goal) == (
        "Wanted: the shortest p99.9, with at least 100.00 MiB/s: 80 % of that without a scheduler "
        "(objective O2, β = 80 %)."
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
    document["points"][0] |= {"tail_ns_max": None, "errors": 3}
    document["confidence"]["is_enough"] = False
    made = section(work, document)
    assert made.flaws[0].endswith("needs 36; 1 of 7 measurements have fewer.")
    assert made.flaws[1] == "3 I/Os failed."
    (row,) = (row for row in made.rows if row.name == "inflight_max=1 split_kib=16")
    assert row.numbers[1] == "(366.6)"
    assert row.numbers[-5:-1] == ["337.9", "?", "40", "no"]


def test_samples_that_suffice_are_those_of_the_reference_page() -> None:
    assert [samples_needed(percent, 95) for percent in (99, 99.9, 99.99)] == [368, 3688, 36887]


def test_every_candidate_was_measured_or_is_excluded_by_one_that_was() -> None:
    report = read_tune_report(TUNED)[0]
    candidates = all_candidates(report)
    assert [bool(each.point) != bool(each.why) for each in candidates] == [True] * 12
    why = {tuple(each.knobs.values()): each.why for each in candidates}
    assert why[2, 4] == "below inflight_max=2 split_kib=8, which keeps the limit"


def test_nothing_is_excluded_by_a_quantity_that_does_not_rise(
    work: Path, document: Document
) -> None:
    falls = {"lower": {"inflight_max": 1, "split_kib": 16}}
    falls["upper"] = {"inflight_max": 2, "split_kib": 16}
    document["contradictions"] = [falls | {"quantity": "throughput"}]
    made = section(work, document)
    assert made.flaws[0].startswith("Not monotonic: inflight_max=1 split_kib=16 has more throughp")
    assert {row.why for row in made.rows} == {"", "not measured"}


def test_candidates_that_were_not_measured_are_folded_if_they_are_many(
    work: Path, document: Document
) -> None:
    document["knobs"]["split_kib"] = list(range(4, 20))
    document["candidates"] = 64
    made = section(work, document)
    assert len(made.rows) == 7
    assert len(made.folded) == 58


CHANGES: dict[str, tuple[Any, str]] = {
    "schema": ("steadyio.bench/1", "its schema is 'steadyio.bench/1', not 'steadyio.tune/1'"),
    "extra": (1, "extra = 1: unknown key"),
    "candidates": (13, "candidates = 13: must be the number of combinations of [knobs]"),
    "goal.best": ("cost", "[goal]: best = 'cost': must be one of tail, throughput"),
    "goal.tail_ns_max": (None, "[goal]: tail_ns_max = None: must be a number"),
    "points.1.tail_ns": ("1", "[[points]] 2: tail_ns = '1': must be a whole number"),
    "points.1.is_met": (1, "[[points]] 2: is_met = 1: must be true or false"),
    "points.0.knobs.split_kib": (5, "[[points]] 1: knobs = "),
    "pick.knobs.split_kib": (4, "pick = "),
    "pick.commands": ([1], "[pick]: commands = [1]: must be an array of shell commands"),
    "record.device.size_bytes": (None, "[record]: [device]: size_bytes = None: must be a whole"),
    "record.results": ([], "[none]: knobs = {}: must be those of one of [record] [[results]]"),
}


@pytest.mark.parametrize("key", CHANGES)
def test_a_wrong_value_is_refused_by_file_and_key(work: Path, document: Document, key: str) -> None:
    value, complaint = CHANGES[key]
    *path, last = key.split(".")
    inner: Any = document
    for step in path:
        inner = inner[int(step) if step.isdecimal() else step]
    inner[last] = value
    with pytest.raises(LabError, match="--tune .*changed.json") as raised:
        read(work, document)
    assert complaint in str(raised.value)


@pytest.mark.parametrize("key", sorted(json.loads(TUNED.read_bytes()).keys() - {"schema"}))
def test_a_missing_key_is_refused_by_name(work: Path, document: Document, key: str) -> None:
    del document[key]
    with pytest.raises(LabError, match=rf"changed.json: {key} is missing"):
        read(work, document)


def test_reports_of_one_name_and_absent_ones_are_refused(work: Path, document: Document) -> None:
    file = written(work, document)
    done = report_of(work, file, file)
    assert done.returncode != 0
    assert "--tune: two reports are called changed: rename one of them" in done.stderr
    done = report_of(work, work / "none.json")
    assert done.returncode != 0
    assert "none.json: No such file" in done.stderr
