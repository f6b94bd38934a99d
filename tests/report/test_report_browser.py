# SPDX-License-Identifier: MIT OR Apache-2.0
"""The report in a real browser: nothing fails, nothing is fetched, everything is drawn."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from seen import CHROMIUM, DESKTOP, PATIENCE_MS, PHONE, Seen, boxes, headless_browser, open_report
from steady_lab.errors import LabError
from steady_lab.figures.metric import LATENCIES, Metric
from steady_lab.figures.rows import read_csv
from steady_lab.figures.table import format_number
from steady_lab.kernels.build import LabKernel
from steady_lab.pages.bench_section import read_bench_sections
from steady_lab.pages.page_data import script_json
from steady_lab.pages.report import read_sections, render
from steady_lab.paths import BUILD, PROJECT

TINY = PROJECT / "tests" / "figures" / "tiny.toml"
RUN_TIMEOUT_S = 300
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.reads("lab", "kernel", "device", "experiments", "tests/figures"),
]
VARIANTS = {"k2": "k2", "k2-split4": "k2, split_kib=4"}
POINTS = ("4", "512")
PANELS = ".plot .cartesianlayer .subplot .scatterlayer"


def steady_lab(*arguments: str) -> None:
    """Run steady-lab; its failure fails the test."""
    done = subprocess.run(
        [sys.executable, "-m", "steady_lab.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def tiny_build(base_kernel: LabKernel) -> Path:
    """Results and report of real boots of the tiny figure, kept between runs of the tests."""
    build = BUILD / "tests" / "report"
    build.mkdir(parents=True, exist_ok=True)
    with (build / ".lock").open("w") as lock:  # one worker makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        steady_lab("run", str(TINY), "--build", str(build))
        steady_lab("report", "--build", str(build))
    return build


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless_browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def report(browser: Browser, tiny_build: Path) -> Iterator[Seen]:
    """A page for the tests that only look and point."""
    seen = open_report(browser, tiny_build / "report" / "index.html", DESKTOP)
    yield seen
    seen.page.close()


@pytest.fixture
def own_report(browser: Browser, tiny_build: Path) -> Iterator[Seen]:
    """A page for a test that changes it."""
    seen = open_report(browser, tiny_build / "report" / "index.html", DESKTOP)
    yield seen
    seen.page.close()


def hover_text(page: Page, trace: int, point: int) -> str:
    """Put the mouse on a point of a trace, as it is drawn, and return the label's text."""
    place: dict[str, float] = page.evaluate(
        """([trace, point]) => {
            const plot = document.querySelector('.plot'), full = plot._fullData[trace];
            const own = plot._fullLayout, suffix = full.xaxis.slice(1);
            const x = own['xaxis' + suffix], y = own['yaxis' + suffix];
            const box = plot.getBoundingClientRect();
            return {x: box.x + x._offset + x.c2p(x.d2c(full.x[point])),
                    y: box.y + y._offset + y.c2p(y.d2c(full.y[point]))};
        }""",
        [trace, point],
    )
    page.mouse.move(5, 5)
    page.mouse.move(place["x"] - 3, place["y"])
    page.mouse.move(place["x"], place["y"])
    page.wait_for_selector(".plot .hovertext")
    return str(page.text_content(".plot .hovertext"))


def plot_data(page: Page) -> dict[str, Any]:
    """Return the data that the page draws."""
    data: dict[str, Any] = json.loads(str(page.text_content("script.plot-data")))
    return data


def test_page_is_silent_and_fetches_nothing(own_report: Seen, tiny_build: Path) -> None:
    assert own_report.console == []
    assert own_report.requests == [(tiny_build / "report" / "index.html").as_uri()]
    with own_report.page.expect_console_message(lambda m: "Content Security Policy" in m.text):
        own_report.page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 'refused')")


def test_every_trace_is_drawn(report: Seen) -> None:
    data = plot_data(report.page)
    lines = boxes(report.page, ".plot .scatterlayer .trace .lines path")
    wanted = [trace for trace in data["traces"] if "lines" in trace["mode"]]
    assert len(lines) == len(wanted) == 3 * len(VARIANTS)
    assert all(max(box["width"], box["height"]) > 10 for box in lines), lines
    marks = boxes(report.page, ".plot .scatterlayer .trace .points path")
    assert len(marks) == sum(len(t["x"]) for t in data["traces"] if "markers" in t["mode"])
    assert all(box["width"] > 3 and box["height"] > 3 for box in marks)


def test_panels_stand_side_by_side_and_stack_on_a_phone(
    browser: Browser, report: Seen, tiny_build: Path
) -> None:
    panels = boxes(report.page, PANELS)
    assert len(panels) == 3
    for left, right in pairwise(panels):
        assert right["x"] > left["x"] + left["width"] - 1
    phone = open_report(browser, tiny_build / "report" / "index.html", PHONE)
    for upper, lower in pairwise(boxes(phone.page, PANELS)):
        assert lower["y"] > upper["y"] + upper["height"] - 1
    width = phone.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    assert phone.console == []
    phone.page.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_long_caption_is_broken_within_its_panel(
    browser: Browser, tiny_build: Path, size: dict[str, int]
) -> None:
    (section,) = read_sections(tiny_build / "results")
    data = json.loads(section.plot_json)
    words = "real-time CCDF, 720,000 records of 16 KiB, one every 5 ms, a &amp; b &lt; c"
    data["panels"][2]["caption"] = f"<b>(c)</b> {words}"
    file = tiny_build / "report" / f"caption-{size['width']}.html"
    file.write_text(render([replace(section, plot_json=script_json(data))]), encoding="utf-8")
    seen = open_report(browser, file, size)
    panels = boxes(seen.page, PANELS)
    captions = boxes(seen.page, ".plot .annotation-text-g text.annotation-text")
    assert len(captions) == len(panels) == 3
    for panel, caption in zip(panels, captions, strict=True):
        assert caption["x"] + caption["width"] <= min(
            size["width"], panel["x"] + panel["width"] + 8
        )
        assert caption["y"] + caption["height"] <= panel["y"] + 2
    assert captions[2]["height"] > 1.5 * captions[0]["height"], "it takes two lines or more"
    assert seen.console == []
    seen.page.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_long_names_of_an_axis_cover_neither_its_title_nor_the_legend(
    browser: Browser, tiny_build: Path, size: dict[str, int]
) -> None:
    (section,) = read_sections(tiny_build / "results")
    data = json.loads(section.plot_json)
    data["panels"][0]["x"] = {"title": {"text": "Next to the reader"}, "type": "category"}
    for trace in data["traces"]:
        if trace.get("xaxis", "x") == "x":
            trace["x"] = [f"{each} processes that read and write without a pause" for each in "24"]
    file = tiny_build / "report" / f"names-{size['width']}.html"
    file.write_text(render([replace(section, plot_json=script_json(data))]), encoding="utf-8")
    seen = open_report(browser, file, size)
    names = boxes(seen.page, ".plot .xaxislayer-above .xtick text")
    (title,) = boxes(seen.page, ".plot .g-xtitle text")
    legend = boxes(seen.page, ".plot .legend .traces")
    assert len(names) == 2
    for name in names:
        assert name["x"] >= 0 and name["x"] + name["width"] <= size["width"]
        assert name["width"] > name["height"], "it is not turned"
        assert name["y"] + name["height"] <= title["y"] + 2
    assert title["y"] + title["height"] <= min(entry["y"] for entry in legend) + 2
    seen.page.close()


def test_plots_are_drawn_when_they_come_near(browser: Browser, tiny_build: Path) -> None:
    (section,) = read_sections(tiny_build / "results")
    names = [f"copy-{n}" for n in range(4)]
    sections = [replace(section, figure=replace(section.figure, name=name)) for name in names]
    file = tiny_build / "report" / "copies.html"
    file.write_text(render(sections), encoding="utf-8")
    seen = open_report(browser, file, DESKTOP)
    last = seen.page.locator("#copy-3 .plot")
    assert last.locator(".legendpoints").count() == 0
    empty = last.bounding_box()
    last.scroll_into_view_if_needed()
    expect(last.locator(".legendpoints").first).to_be_visible()
    drawn = last.bounding_box()
    assert empty and drawn and abs(empty["height"] - drawn["height"]) < 2, "nothing jumps"
    assert seen.console == []
    seen.page.close()


def test_hover_tells_all_values(report: Seen, tiny_build: Path) -> None:
    measured = read_csv(tiny_build / "results" / "tiny.csv")
    text = hover_text(report.page, 0, 1)
    row = measured.row("k2", 512, "rt")
    assert "k2" in text
    for statistic in LATENCIES:
        assert f"{row.value(Metric('rt', statistic)):.3f} ms" in text
    assert str(row.count) in text
    for class_name in ("rt", "bg", "total"):
        assert f"{measured.value('k2', 512, Metric(class_name, 'mib_s')):.2f} MiB/s" in text


def test_ccdf_is_drawn_down_to_one_io(report: Seen, tiny_build: Path) -> None:
    document = json.loads((tiny_build / "results" / "tiny.json").read_text(encoding="utf-8"))
    data = plot_data(report.page)
    lines = [t for t in data["traces"] if t["xaxis"] == "x3" and t["mode"] == "lines"]
    assert [line["legendgroup"] for line in lines] == list(VARIANTS)
    for line in lines:
        (result,) = (
            item
            for item in document["results"]
            if (item["variant"], item["point"]) == (line["legendgroup"], 512)
        )
        histogram = result["classes"]["rt"]["histogram_ns"]
        assert line["x"] == [value / 1e6 for value, _ in histogram]
        assert line["y"][0] == 1
        assert line["y"][-1] == pytest.approx(histogram[-1][1] / result["classes"]["rt"]["count"])
    assert "P(latency" in hover_text(report.page, 2, 0)


def test_legend_hides_a_variant_in_all_panels(own_report: Seen) -> None:
    lines = own_report.page.locator(".plot .scatterlayer .trace .lines path")
    expect(lines).to_have_count(3 * len(VARIANTS))
    own_report.page.locator(".plot .legendtoggle").first.click()
    expect(lines).to_have_count(3 * (len(VARIANTS) - 1))


def test_legend_can_be_used_by_keyboard(own_report: Seen) -> None:
    page = own_report.page
    lines = page.locator(".plot .scatterlayer .trace .lines path")
    expect(lines).to_have_count(3 * len(VARIANTS))
    entry = page.locator(".plot .legend .traces").first
    expect(entry).to_have_attribute("aria-pressed", "true")
    entry.focus()
    page.keyboard.press("Enter")
    expect(lines).to_have_count(3 * (len(VARIANTS) - 1))
    expect(page.locator(".plot .legend .traces:focus")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press(" ")
    expect(lines).to_have_count(3 * len(VARIANTS))


def test_a_picture_has_a_name_and_its_panels_are_named(report: Seen) -> None:
    label = str(report.page.get_attribute(".plot", "aria-label"))
    assert "(a)" in label and "(c)" in label, label
    name = report.page.evaluate(
        "document.querySelector('.plot')._context.toImageButtonOptions.filename"
    )
    assert name == "tiny"


def test_a_dark_system_gets_a_dark_page_and_light_paper(own_report: Seen) -> None:
    page = own_report.page
    colours = "[getComputedStyle(document.body).backgroundColor,"
    colours += " document.querySelector('.plot')._fullLayout.paper_bgcolor]"
    assert page.evaluate(colours) == ["rgb(255, 255, 255)", "#fff"]
    page.emulate_media(color_scheme="dark")
    for _ in range(PATIENCE_MS // 50):
        if page.evaluate(colours)[1] != "#fff":
            break
        page.wait_for_timeout(50)
    assert page.evaluate(colours) == ["rgb(22, 22, 22)", "#161616"]
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(colours)[1] == "#fff"
    assert own_report.console == []


def test_tables_equal_the_csv(report: Seen, tiny_build: Path) -> None:
    measured = read_csv(tiny_build / "results" / "tiny.csv")
    tables = report.page.eval_on_selector_all(
        "table.values",
        "all => all.map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText.trim())))",
    )
    sweep, detail = tables
    assert sweep[0] == ["", *POINTS]
    for line, (variant, title) in zip(sweep[1:], VARIANTS.items(), strict=True):
        values = [measured.value(variant, int(point), Metric("rt", "p99")) for point in POINTS]
        assert line == [title, *(format_number(value) for value in values)]
    for line, (variant, title) in zip(detail[1:], VARIANTS.items(), strict=True):
        rt = measured.row(variant, 512, "rt")
        latencies = [rt.value(Metric("rt", name)) for name in ("p50", "p99", "p999", "max")]
        rates = [
            measured.value(variant, 512, Metric(name, "mib_s")) for name in ("rt", "bg", "total")
        ]
        numbers = [format_number(value) for value in latencies]
        assert line == [title, *numbers, str(rt.count), *(format_number(rate) for rate in rates)]


def test_downloads_are_the_result_files(report: Seen, tiny_build: Path) -> None:
    for name in ("tiny.csv", "tiny.json"):
        with report.page.expect_download() as waiting:
            report.page.click(f"a[download='{name}']")
        content = Path(waiting.value.path()).read_bytes()
        assert content == (tiny_build / "results" / name).read_bytes()


def test_text_of_specs_is_escaped(report: Seen) -> None:
    assert report.page.text_content("h2") == "Two variants, two sizes & <few> I/Os"
    assert report.page.locator("few").count() == 0


def test_checks_are_shown_with_their_verdict(report: Seen) -> None:
    verdicts = report.page.eval_on_selector_all(
        "table.checks tbody tr td:first-child", "all => all.map(e => e.innerText)"
    )
    assert verdicts == ["PASS", "PASS"]


def test_screenshot_command_pictures_the_plot(tiny_build: Path, tmp_path: Path) -> None:
    target = tmp_path / "tiny.png"
    steady_lab("report", "--build", str(tiny_build), "--screenshot", str(target))
    kind = subprocess.run(["file", "-b", target], capture_output=True, text=True, check=True).stdout
    assert kind.startswith("PNG image data, 2400 x 1040")


def test_page_without_figures_still_renders() -> None:
    assert "<h1>" in render([])


def test_a_record_of_a_bench_is_shown_like_a_figure(
    browser: Browser, tiny_build: Path, tmp_path: Path
) -> None:
    record = tiny_build / "work" / "tiny" / "k2" / "record.json"
    steady_lab("report", "--bench", str(record), "--build", str(tmp_path))
    seen = open_report(browser, tmp_path / "report" / "index.html", DESKTOP)
    page = seen.page
    assert seen.console == []
    expect(page.locator("#record .plot .scatterlayer .trace .lines path")).to_have_count(3)
    assert "k2" in str(page.text_content("#record table.values"))
    assert page.locator("#record table.checks").count() == 0
    assert "steady-lab report --bench record.json" in str(page.text_content("#record pre.command"))
    page.close()


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    for text, says in [("{}", "steady bench --out"), ("x", "not JSON")]:
        wrong.write_text(text)
        with pytest.raises(LabError, match=f"--bench .*wrong.json.*{says}"):
            read_bench_sections([wrong])
    wrong.write_text('{"schema": "steadyio.bench/1"}')
    with pytest.raises(LabError, match="not a whole record of steady bench"):
        read_bench_sections([wrong])
