# SPDX-License-Identifier: MIT OR Apache-2.0
"""What sysbench and dd print becomes the right numbers, and what they did not print an error."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from steady_lab.errors import LabError, SpecError
from steady_lab.figures.application import APPLICATIONS
from steady_lab.figures.application_record import copies, transactions
from steady_lab.figures.results import Sources, merge, read_result, result_rows, write_result
from steady_lab.figures.rows import csv_text
from steady_lab.figures.spec import load_figure
from steady_lab.figures.table import figure_tables
from steady_lab.figures.workload import parse_workload
from steady_lab.pages.plot import plot_data
from steady_lab.toml_table import load_toml

# As sysbench 1.0.20 prints it.
REPORT = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       8.895 |**                                       2
       9.560 |**************************************** 94
     112.670 |*                                        3
    1013.000 |                                         1
 
SQL statistics:
    ignored errors:                      0      (0.00 per sec.)

General statistics:
    total number of events:              100

Latency (ms):
         min:                                    8.91
         avg:                                   21.00
         max:                                 1005.25
         99th percentile:                      112.67
"""  # noqa: W293
DD = """1+0 records in
0+0 records out
0 bytes copied, 0.5 s, 0.0 kB/s
128+0 records in
128+0 records out
67108864 bytes (67 MB, 64 MiB) copied, 1.5 s, 44.7 MB/s
"""
SPEC = load_toml(APPLICATIONS / "s1-oltp.toml")


def test_percentiles_are_those_of_sysbenchs_histogram() -> None:
    rt = transactions(REPORT)
    assert rt["latency_ns"] == {
        "min": 8_910_000,
        "p50": 9_560_000,
        "p95": 9_560_000,
        "p99": 112_670_000,
        "p999": 1_005_250_000,  # the bin's value, but not above the maximum
        "p9999": 1_005_250_000,
        "max": 1_005_250_000,
    }
    assert (rt["count"], rt["errors"]) == (100, 0)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("count\n       8.895 |**                                       2", "count", "98 trans"),
        ("number of events", "number", "sysbench's report has no .total number of events"),
        ("max:", "maximum:", "sysbench's report has no .max"),
        (" |", "  ", "0 transactions"),
    ],
)
def test_a_report_that_is_not_understood_is_refused(old: str, new: str, says: str) -> None:
    assert old in REPORT
    with pytest.raises(LabError, match=says):
        transactions(REPORT.replace(old, new))


def test_throughput_of_the_copies_adds_up() -> None:
    bg = copies([DD, DD])
    assert bg["mib_s"] == 64.0  # 64 MiB in 2 s, twice
    assert (bg["bytes"], bg["count"]) == (2 << 26, 256)


@pytest.mark.parametrize("outputs", [[], [DD, "dd: error reading\n"]])
def test_copies_that_said_nothing_are_refused(outputs: list[str]) -> None:
    with pytest.raises(LabError, match="dd"):
        copies(outputs)


def test_csv_leaves_empty_what_is_not_reported() -> None:
    classes = {"rt": transactions(REPORT), "bg": copies([DD])}
    rows = result_rows("f", [{"variant": "k2", "point": None, "classes": classes}])
    _, rt, bg = csv_text(rows).splitlines()
    assert rt.startswith("f,k2,,rt,transaction,,8910000,9560000,9560000,112670000,")
    assert rt.endswith(",1005250000,100,")
    assert bg == "f,k2,,bg,copy,512,,,,,,,,128,32.000"


def test_a_figure_of_an_application_shows_its_latencies_side_by_side(tmp_path: Path) -> None:
    figure = load_figure("s1-fig8-write")
    assert figure.workload.application is not None
    assert figure.workload.application.background == "write"
    classes = {"rt": transactions(REPORT), "bg": copies([DD])}
    shared = dict.fromkeys(("spec", "seed", "device"), 1)
    records = [
        {
            **shared,
            "tool": {"sysbench": "1.0.20"},
            "kernel": {"release": "6.1"},
            "unmet": [],
            "results": [{"variant": variant.name, "point": None, "classes": classes}],
        }
        for variant in figure.workload.variants
    ]
    text = merge(figure, {}, records, Sources("c" * 64, "d" * 64))
    measured = write_result(figure, text, tmp_path)
    data = plot_data(figure, read_result(tmp_path / "s1-fig8-write.json"))
    (line,) = (t for t in data["traces"] if t["name"] == "kyber" and t["xaxis"] == "x")
    assert line["x"] == ["min", "p50", "p95", "p99", "max"]
    assert line["y"] == [8.91, 9.56, 9.56, 112.67, 1005.25]
    (table,) = figure_tables(figure, measured)
    assert table.header[-2:] == ["count", "background MiB/s"]
    assert table.body[0] == ["none", "8.91", "9.56", "9.56", "113", "1005", "100", "32.0"]


@pytest.mark.parametrize(
    ("place", "key", "value", "says"),
    [
        ("application", "name", "no-such", "must be the name of a folder in .*: mariadb-oltp"),
        ("application", "background", "Read!", "background = 'Read!': must be"),
        ("application", "nonsense", 1, "nonsense = 1: unknown key"),
        ("length", "events", 0, "events = 0: must be a whole number from 1"),
        (None, "sweep", {}, "sweep = {}: unknown key"),
        (None, "variant", [{"name": "a", "knobs": 1}], "knobs = 1: must be a table"),
        (None, "variant", [{"name": "a", "knobs": {}, "op": 1}], "op = 1: unknown key"),
    ],
)
def test_a_wrong_spec_names_key_and_limits(
    place: str | None, key: str, value: Any, says: str
) -> None:
    raw = copy.deepcopy(SPEC)
    (raw[place] if place else raw)[key] = value
    with pytest.raises(SpecError, match=says):
        parse_workload(raw, "spec.toml")
