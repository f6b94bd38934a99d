# SPDX-License-Identifier: MIT OR Apache-2.0
"""Merging records, the CSV, checks and sentences: exact, repeatable, and strict."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import figure_sample
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady_lab.figures.checks import evaluate
from steady_lab.figures.metric import METRICS, NS_PER_MS
from steady_lab.figures.quantity import Lowest
from steady_lab.figures.results import merge, read_record, read_result, result_rows, write_result
from steady_lab.figures.rows import COLUMNS, Measurements, ResultError, Row, csv_text, read_csv
from steady_lab.figures.table import check_lines, format_number, summary_text, sweep_table
from steady_lab.pages.plot import ccdf

HISTOGRAMS = st.dictionaries(st.integers(1, 10**12), st.integers(1, 10**6), min_size=1)
P99_MS = st.floats(0.01, 10_000)


def measured(k2_ms: list[float], split_ms: list[float]) -> Measurements:
    """Return the tiny figure's rows with the given real-time p99 values."""
    records = [figure_sample.record("k2", k2_ms), figure_sample.record("k2-split4", split_ms)]
    return Measurements(result_rows("tiny", [r for each in records for r in each["results"]]))


def merged_text() -> str:
    """Return the merged document of the tiny figure with fixed numbers."""
    records = [figure_sample.record("k2", [1, 8]), figure_sample.record("k2-split4", [1, 2])]
    return merge(figure_sample.figure(), figure_sample.DEVICE, records, figure_sample.SOURCES)


@given(HISTOGRAMS, st.floats(0, 1e6))
def test_csv_holds_what_the_record_says(histogram: dict[int, int], mib_s: float) -> None:
    record = figure_sample.record("k2", [1, 2])
    stats = figure_sample.stats(histogram, mib_s)
    record["results"][0]["classes"]["rt"] = stats
    lines = csv_text(result_rows("tiny", record["results"])).splitlines()
    assert lines[0] == ",".join(COLUMNS)
    cells = dict(zip(COLUMNS, lines[1].split(","), strict=True))
    for name in ("min", "p50", "p99", "p999", "p9999", "max"):
        assert int(cells[f"{name}_ns"]) == stats["latency_ns"][name]
    at_or_below = sum(n for value, n in histogram.items() if value <= int(cells["p95_ns"]))
    below = sum(n for value, n in histogram.items() if value < int(cells["p95_ns"]))
    assert below < 0.95 * sum(histogram.values()) <= at_or_below
    assert int(cells["count"]) == sum(histogram.values())
    assert math.isclose(float(cells["mib_s"]), mib_s, abs_tol=0.0005001)


@given(
    st.lists(st.integers(0, 2**62), min_size=8, max_size=8),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=20),
    st.integers(0, 10**9),
)
def test_csv_reads_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], point: str, thousandths: int
) -> None:
    a, b, c, d, e, f, g, count = numbers
    measured = Row(
        "f", "v", point, "rt", "read", "", a, b, c, d, e, f, g, count, thousandths / 1000
    )
    nothing = (None, None, None, None, None, None, None)
    unreported = Row("f", "v", point, "bg", "copy", "", *nothing, count, None)
    rows = [measured, unreported]
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    path.write_text(csv_text(rows), encoding="utf-8", newline="")
    assert read_csv(path).rows == rows


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tiny,k2,4,rt,randread,64,1,2,3,4,5,6,7,x,1.0", "f.csv:2: .*'x'"),
        ("tiny,k2,4,rt,randread,64,1,2,3", "f.csv:2"),
        ("tiny,k2,4,idle,randread,64,1,2,3,4,5,6,7,8,1.0", "f.csv:2: class 'idle'"),
    ],
)
def test_bad_csv_names_the_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{line}\n", encoding="utf-8")
    with pytest.raises(ResultError, match=says):
        read_csv(path)


def test_csv_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("figure,variant\n", encoding="utf-8")
    with pytest.raises(ResultError, match="first line must be figure,variant,point"):
        read_csv(path)


def test_result_is_repeatable_and_reads_back(tmp_path: Path) -> None:
    text = merged_text()
    assert text == merged_text()
    figure = figure_sample.figure()
    rows = write_result(figure, text, tmp_path).rows
    result = read_result(tmp_path / "tiny.json")
    assert result.measured.rows == rows == read_csv(tmp_path / "tiny.csv").rows
    assert result.document["figure"] == figure.raw
    assert [(row.variant, row.point, row.class_name) for row in rows][:4] == [
        ("k2", "4", "rt"),
        ("k2", "4", "bg"),
        ("k2", "4", "total"),
        ("k2", "512", "rt"),
    ]
    assert result.histogram_ns("k2", 512, "rt") == [(4_000_000, 90), (8_000_000, 10)]


@pytest.mark.parametrize("key", ["tool", "kernel", "device", "spec"])
def test_records_that_disagree_are_not_merged(key: str) -> None:
    records = [figure_sample.record("k2", [1, 8]), figure_sample.record("k2-split4", [1, 2])]
    records[1][key] = {"other": 1}
    with pytest.raises(ResultError, match=f"differ in {key}"):
        merge(figure_sample.figure(), figure_sample.DEVICE, records, figure_sample.SOURCES)


def test_unmet_requirements_are_kept_once() -> None:
    records = [figure_sample.record("k2", [1, 8]), figure_sample.record("k2-split4", [1, 2])]
    records[0]["unmet"] = records[1]["unmet"] = ["no fio zonemode"]
    text = merge(figure_sample.figure(), figure_sample.DEVICE, records, figure_sample.SOURCES)
    assert json.loads(text)["unmet"] == ["no fio zonemode"]


def test_record_with_io_errors_or_missing_points_is_refused(tmp_path: Path) -> None:
    figure, path = figure_sample.figure(), tmp_path / "record.json"
    record = figure_sample.record("k2", [1, 8])
    path.write_text(json.dumps(record))
    assert read_record(path, figure, "k2") == record
    with pytest.raises(ResultError, match="results are .*'k2'.* wanted .*'k2-split4'"):
        read_record(path, figure, "k2-split4")
    record["results"][1]["classes"]["bg"]["errors"] = 3
    path.write_text(json.dumps(record))
    with pytest.raises(ResultError, match="3 I/O errors at k2, point 512, bg"):
        read_record(path, figure, "k2")
    path.write_text("{")
    with pytest.raises(ResultError, match="not valid JSON"):
        read_record(path, figure, "k2")


@given(st.lists(P99_MS, min_size=2, max_size=2), st.lists(P99_MS, min_size=2, max_size=2))
def test_checks_are_plain_arithmetic(k2_ms: list[float], split_ms: list[float]) -> None:
    ratio, spread = evaluate(figure_sample.figure().checks, measured(k2_ms, split_ms))
    k2_ns, (first_ns, last_ns) = round(k2_ms[1] * 1e6), [round(ms * 1e6) for ms in split_ms]
    assert math.isclose(ratio.value, k2_ns / last_ns)
    assert ratio.passed == (ratio.value >= 2.0)
    wanted = 100 * abs(first_ns - last_ns) / min(first_ns, last_ns)
    assert math.isclose(spread.value, wanted, abs_tol=1e-9)
    assert spread.passed == (spread.value <= 5.0)


def test_lowest_is_where_the_metric_is_lowest() -> None:
    lowest = Lowest("k2", (4, 512), METRICS["rt.p99_ms"])
    assert lowest.evaluate(measured([3, 1], [1, 1])) == 512
    assert lowest.evaluate(measured([1, 1], [1, 1])) == 4


def test_check_lines_tell_value_bound_and_paper() -> None:
    results = evaluate(figure_sample.figure().checks, measured([1, 3], [2, 2.4]))
    assert check_lines(results) == [
        "FAIL  split-against-k2: 1.25 x (wanted >= 2 x; paper 5 x): Splitting shortens the p99",
        "FAIL  split-is-flat: 20.0 % (wanted <= 5 %): "
        "With splitting the p99 does not depend on the size",
    ]


def test_a_claim_that_is_not_reproduced_is_called_so_and_fails_once_it_is() -> None:
    ratio = replace(figure_sample.figure().checks[0], reproduced=False, reason="a small card")
    (below,) = evaluate([ratio], measured([1, 3], [2, 2.4]))
    assert (below.passed, below.verdict) == (True, "NOT REPRODUCED")
    (within,) = evaluate([ratio], measured([1, 9], [2, 2]))
    assert (within.passed, within.verdict) == (False, "FAIL")


def test_sentences_and_tables_quote_measured_values() -> None:
    figure, rows = figure_sample.figure(), measured([1, 9], [2, 2])
    assert summary_text(figure, rows) == "Splitting shortens the p99 4.50 times."
    table = sweep_table(figure, rows)
    assert table.header == ["", "4", "512"]
    assert table.body == [["k2", "1.00", "9.00"], ["k2, split_kib=4", "2.00", "2.00"]]
    assert "| k2, split_kib=4 | 2.00 | 2.00 |" in table.markdown()


def test_missing_cell_and_division_by_zero_are_errors() -> None:
    rows = measured([1, 8], [1, 2])
    with pytest.raises(ResultError, match="variant none, point 4, class rt"):
        rows.value("none", 4, METRICS["rt.p99_ms"])
    with pytest.raises(ResultError, match="cannot divide by 0.*k2-split4"):
        evaluate(figure_sample.figure().checks, measured([1, 8], [1, 0]))


@given(HISTOGRAMS)
def test_ccdf_falls_from_one_to_one_in_count(histogram: dict[int, int]) -> None:
    latencies_ms, probabilities = ccdf(sorted(histogram.items()))
    total, last = sum(histogram.values()), histogram[max(histogram)]
    assert probabilities[0] == 1
    assert math.isclose(probabilities[-1], last / total)
    assert all(a > b for a, b in zip(probabilities, probabilities[1:], strict=False))
    assert latencies_ms[-1] == max(histogram) / NS_PER_MS


@given(st.floats(0.001, 1e6))
def test_numbers_keep_three_digits(value: float) -> None:
    shown = float(format_number(value))
    assert abs(shown - value) <= max(0.00501, 0.00501 * value)
