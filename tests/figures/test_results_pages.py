# SPDX-License-Identifier: MIT OR Apache-2.0
"""The result pages show the committed records, and the records are what the lab measures."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import figure_sample
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady_lab.commands.demo import DEMO_FIGURES
from steady_lab.devices.fit import load_published
from steady_lab.devices.spec import load_device
from steady_lab.errors import LabError
from steady_lab.figures.checks import evaluate
from steady_lab.figures.loads import BenchLoad
from steady_lab.figures.metric import METRICS
from steady_lab.figures.results import merge, read_result, result_rows, write_result
from steady_lab.figures.rows import Measurements, ResultError, read_csv
from steady_lab.figures.spec import EXPERIMENTS, load_figure, load_figures
from steady_lab.kernels.build import LabKernel
from steady_lab.pages.blocks import fill_blocks
from steady_lab.pages.picture import column_svg
from steady_lab.pages.plot import plot_data, variant_styles
from steady_lab.pages.published import claims_markdown, published_markdown
from steady_lab.pages.records import read_provenance, read_record, write_record
from steady_lab.pages.results import (
    MATRIX_PICTURES,
    PAGES,
    PICTURES,
    RECORDS,
    SPANS_PICTURES,
    make_all,
    take_records,
)
from steady_lab.pages.throughput_share import Cycle, fixed_us_for
from steady_lab.paths import PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import Uml
from steady_lab.toml_table import Point

# docs/results/papers.md names proofs anywhere.
pytestmark = pytest.mark.reads(
    *("lab", "kernel", "device", "experiments", "docs", "tests", "packaging"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"),
)

TOLERANCE = 0.05
SVG = "{http://www.w3.org/2000/svg}"
SVG_BYTES_MAX = 80_000
# Points that nothing else in the tests measures: figure, variant, point.
RERUN: tuple[tuple[str, str, Point], ...] = (
    ("s1-fig5-randwrite", "k2-split4", 512),
    ("s1-table3-read", "k2-maxsectors16", 64),
    ("s5-fig12-randread-cores", "cq-off", 16),
)


def tiny_rows(k2_ms: list[float], split_ms: list[float]) -> Measurements:
    """Return the tiny figure's rows with the given real-time p99 values."""
    records = [figure_sample.record("k2", k2_ms), figure_sample.record("k2-split4", split_ms)]
    return Measurements(result_rows("tiny", [r for each in records for r in each["results"]]))


def test_the_demo_has_records_to_compare_with() -> None:
    assert all((RECORDS / f"{name}.csv").is_file() for name in DEMO_FIGURES)


def test_pages_and_pictures_are_what_the_records_give() -> None:
    made = make_all(RECORDS)
    pictures = {*(picture.file for picture in PICTURES), *MATRIX_PICTURES, *SPANS_PICTURES}
    assert set(made) == {*PAGES, *pictures}
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run: steady-lab results"


def test_another_record_gives_another_page(tmp_path: Path) -> None:
    records = tmp_path / "records"
    shutil.copytree(RECORDS, records)
    shutil.copytree(RECORDS.parent / "6.12", tmp_path / "6.12")
    file = records / "s1-fig5-randread.csv"
    p99_ns = read_csv(file).row("k2-split4", 512, "rt").p99_ns or 0
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f",{p99_ns},", f",{p99_ns * 21 // 20},"), encoding="utf-8")
    page = next(page for page in PAGES if page.name == "s1.md").read_text(encoding="utf-8")
    assert fill_blocks(page, records) != page
    file.unlink()
    with pytest.raises(ResultError, match=r"s1-fig5-randread\.csv: cannot be read"):
        fill_blocks(page, records)


def test_figures_that_a_build_lacks_stay_as_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, results = tmp_path / "records", tmp_path / "results"
    shutil.copytree(RECORDS, records)
    results.mkdir()
    with pytest.raises(LabError, match="has none of the pages' figures"):
        take_records(tmp_path, records)
    figure = next(f for f in load_figures("s1-fig5") if f.name == "s1-fig5-read")
    sample = figure_sample.record("k2", [3, 3])
    result = sample["results"][0]
    made = [
        {
            **sample,
            "results": [{**result, "variant": v.name, "point": p} for p in figure.workload.points],
        }
        for v in figure.workload.variants
    ]
    write_result(figure, merge(figure, figure_sample.DEVICE, made, figure_sample.SOURCES), results)
    take_records(tmp_path, records)
    changed = {
        p.name for p in records.glob("*.csv") if p.read_text() != (RECORDS / p.name).read_text()
    }
    assert changed == {f"{figure.name}.csv", "provenance.csv"}
    assert "s1-fig5-write: not in" in capsys.readouterr().out


def test_every_recorded_figure_says_what_measured_it() -> None:
    recorded = {path.stem for path in RECORDS.glob("*.csv") if "." not in path.stem}
    assert recorded - {"provenance"} == set(read_provenance(RECORDS))


@pytest.mark.parametrize(("name", "variant", "point"), RERUN, ids=lambda value: str(value))
def test_the_lab_measures_what_is_recorded(
    base_kernel: LabKernel, work: Path, name: str, variant: str, point: Point
) -> None:
    figure = load_figure(name)
    shutil.copyfile(figure.workload_file, work / "workload.toml")
    device_file = figure.device_file_of(variant)
    command = [*BenchLoad(figure).command(load_device(device_file), variant), f"--point={point}"]
    result = Uml(base_kernel).boot(BootRequest(command, work, device_file))
    assert result.exit_status == 0, result.output
    (measured,) = json.loads((work / "record.json").read_text(encoding="utf-8"))["results"]
    rows = Measurements(result_rows(name, [measured]))
    recorded = read_csv(RECORDS / f"{name}.csv")
    for metric in ("rt.p50_ms", "rt.p99_ms", "rt.mib_s", "total.mib_s"):
        now = rows.value(variant, point, METRICS[metric])
        then = recorded.value(variant, point, METRICS[metric])
        assert math.isclose(now, then, rel_tol=TOLERANCE), f"{metric}: {now}, recorded {then}"


def test_a_difference_without_a_reason_is_refused() -> None:
    figure = figure_sample.figure()
    far, near = tiny_rows([1, 4], [1, 1]), tiny_rows([1, 8.5], [1, 1.7])
    assert "| 8 | 8.50 | 1.06 | section 5.1 |" in published_markdown([(figure, near)])
    with pytest.raises(
        LabError, match=r"needs a `reason` where ours / published is not 0.8 to 1.25"
    ):
        published_markdown([(figure, far)])
    explained = replace(figure, published=(replace(figure.published[0], reason="half the size"),))
    assert "| 0.50 | half the size (section 5.1) |" in published_markdown([(explained, far)])


def test_a_claim_far_from_the_paper_needs_a_reason() -> None:
    figure = figure_sample.figure()
    near, far = (evaluate(figure.checks, tiny_rows([1, p99], [1, 1])) for p99 in (4.8, 3))
    assert "| PASS | few> I/Os |" not in claims_markdown([(figure, near)])
    assert "Splitting shortens the p99 | 4.80 x | >= 2 x | 5 x |  |" in claims_markdown(
        [(figure, near)]
    )
    with pytest.raises(
        LabError, match="split-against-k2: 3 against the paper's 5 needs a `reason`"
    ):
        claims_markdown([(figure, far)])


def test_table_3_is_the_one_that_the_device_is_fitted_to() -> None:
    fitted = {
        (cell.op, cell.pattern, cell.rt_kib, quantity, getattr(cell, quantity))
        for cell in load_published(PROJECT / "experiments/devices/published/s1.toml")
        if cell.where.startswith("Table 3")
        for quantity in ("total_mib_s", "rt_p99_ms")
        if getattr(cell, quantity) is not None
    }
    shown = set()
    for panel in load_figures("s1-table3"):
        op = panel.name.rsplit("-", 1)[-1]
        pattern = "random" if op.startswith("rand") else "sequential"
        for item in panel.published:
            quantity = "rt_p99_ms" if item.cell.metric.is_latency else "total_mib_s"
            kib = item.cell.point
            shown.add((op.removeprefix("rand"), pattern, kib, quantity, item.value))
    assert shown == fitted
    assert sum(len(panel.published) for panel in load_figures("s1-table3")) == 7 * 8 * 2


def test_record_reads_back_as_written(tmp_path: Path) -> None:
    figure = figure_sample.figure()
    records = [figure_sample.record("k2", [1, 8]), figure_sample.record("k2-split4", [1, 2])]
    text = merge(figure, figure_sample.DEVICE, records, figure_sample.SOURCES)
    write_result(figure, text, tmp_path)
    result = read_result(tmp_path / "tiny.json")
    write_record(figure, result, tmp_path / "records")
    recorded = read_record(figure, tmp_path / "records")
    assert recorded.measured.rows == result.measured.rows


def test_pictures_are_small_and_well_formed() -> None:
    for picture in PICTURES:
        text = picture.file.read_text(encoding="utf-8")
        assert len(text) < SVG_BYTES_MAX, picture.file
        root = ElementTree.fromstring(text)
        assert root.tag.endswith("svg")
        for variant in load_figures(picture.figure)[0].workload.variants:
            assert f">{variant.title}</text>" in text


@pytest.mark.nightly("a picture that depends on the machine")
def test_pictures_do_not_depend_on_settings_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 22\nfont.family: serif\n")
    other = {"HOME": str(tmp_path), "MPLCONFIGDIR": str(tmp_path), "LANG": "de_DE.UTF-8"}
    # Without fused multiply-add, and with another order of sums, as on an older processor.
    older = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}
    older |= {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA"}
    done = subprocess.run(
        [sys.executable, "-m", "steady_lab.cli", "results", "--check"],
        env={**os.environ, **other, **older, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "up to date" in done.stdout


@pytest.mark.parametrize("name", sorted(p.stem for p in (EXPERIMENTS / "figures").glob("*.toml")))
def test_no_two_variants_of_a_figure_look_the_same(name: str) -> None:
    styles = variant_styles(load_figures(name)[0]).values()
    assert len({style.colour for style in styles}) == len(styles)
    assert len({(style.symbol.removesuffix("-open"), style.dash) for style in styles}) == len(
        styles
    )


def test_picture_shows_each_value_at_its_place() -> None:
    figure = figure_sample.figure()
    rows = tiny_rows([1, 8], [2, 2])

    class Result:
        measured = rows

        def histogram_ns(self, *cell: object) -> list[tuple[int, int]]:
            return [(1_000_000, 1)]

    svg = column_svg([("a & b", plot_data(figure, Result()))], 0)
    assert "a &amp; b" in svg
    root = ElementTree.fromstring(svg)
    styles = variant_styles(figure)

    def height_px(name: str) -> list[float]:
        """Return where the marks of a variant's line are, counted from above."""
        (line,) = (
            group
            for group in root.iter(f"{SVG}g")
            if any(
                f"stroke: {styles[name].colour.lower()}" in path.get("style", "")
                for path in group.findall(f"{SVG}path")
            )
            and len(group.findall(f".//{SVG}use")) == len(figure.workload.points)
        )
        return [float(use.get("y", "")) for use in line.iter(f"{SVG}use")]

    first, last = height_px("k2")
    assert last < first, "a larger latency lies higher"
    first, last = height_px("k2-split4")
    assert last == first


def test_a_point_where_a_class_does_not_run_is_a_gap() -> None:
    figure = figure_sample.figure()
    all_rows = tiny_rows([1, 8], [2, 2]).rows
    last = str(figure.workload.points[-1])

    class Result:
        measured = Measurements(
            [row for row in all_rows if (row.point, row.class_name) != (last, "bg")]
        )

        def histogram_ns(self, *cell: object) -> list[tuple[int, int]]:
            return [(1_000_000, 1)]

    costs = [t for t in plot_data(figure, Result())["traces"] if t.get("xaxis") == "x2"]
    assert [trace["y"][-1] for trace in costs] == [None] * len(costs) != []
    assert all(None not in trace["y"][:-1] for trace in costs)


@given(st.floats(10, 2000), st.floats(1, 50))
def test_fixed_time_for_a_share_is_the_inverse_of_the_share(
    fixed_us: float, per_kib: float
) -> None:
    def cycle(bg_kib: int, us: float) -> Cycle:
        data_us = (64 + bg_kib) * per_kib
        return Cycle(bg_kib, us, data_us, (64 + bg_kib) / (us + data_us))

    split, whole = cycle(4, fixed_us), cycle(512, fixed_us)
    share = split.mib_s / whole.mib_s
    found_us = fixed_us_for(share, cycle(4, 0), cycle(512, 0))
    assert math.isclose(found_us, fixed_us, rel_tol=1e-6)


def test_unknown_kinds_of_blocks_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no block"):
        fill_blocks("<!-- colour:s1-fig5 -->\n<!-- /colour -->\n", tmp_path)
