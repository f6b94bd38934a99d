# SPDX-License-Identifier: MIT OR Apache-2.0
"""Applications: their specs are checked, and fields that they do not report stay empty."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from steady_lab.errors import SpecError
from steady_lab.figures.application import APPLICATIONS
from steady_lab.figures.results import Sources, merge, read_result, result_rows, write_result
from steady_lab.figures.rows import csv_text
from steady_lab.figures.spec import load_figure
from steady_lab.figures.table import figure_tables
from steady_lab.figures.workload import parse_workload
from steady_lab.pages.plot import plot_data
from steady_lab.toml_table import load_toml

NAMES = ("min", "p50", "p95", "p99", "p999", "p9999", "max")
LATENCIES_NS = (8_910_000, 9_560_000, 9_560_000, 112_670_000, *[1_005_250_000] * 3)
# As `steady with` writes them.
CLASSES = {
    "rt": {
        "op": "transaction",
        "bs_kib": None,
        "count": 100,
        "bytes": None,
        "mib_s": None,
        "errors": 0,
        "latency_ns": dict(zip(NAMES, LATENCIES_NS, strict=True)),
        "histogram_ns": [[8_895_000, 2], [9_560_000, 94], [112_670_000, 3], [1_013_000_000, 1]],
    },
    "bg": {
        "op": "copy",
        "bs_kib": 512,
        "count": 128,
        "bytes": 1 << 26,
        "mib_s": 32.0,
        "errors": 0,
        "latency_ns": dict.fromkeys(NAMES),
        "histogram_ns": [],
    },
}
SPEC = load_toml(APPLICATIONS / "s1-oltp.toml")


def test_csv_leaves_empty_what_is_not_reported() -> None:
    rows = result_rows("f", [{"variant": "k2", "point": None, "classes": CLASSES}])
    _, rt, bg = csv_text(rows).splitlines()
    assert rt.startswith("f,k2,,rt,transaction,,8910000,9560000,9560000,112670000,")
    assert rt.endswith(",1005250000,100,")
    assert bg == "f,k2,,bg,copy,512,,,,,,,,128,32.000"


def test_a_figure_of_an_application_shows_its_latencies_side_by_side(tmp_path: Path) -> None:
    figure = load_figure("s1-fig8-write")
    assert figure.workload.application is not None
    assert figure.workload.application.background == "write"
    shared = dict.fromkeys(("spec", "device"), 1)
    records = [
        {
            **shared,
            "tool": {"sysbench": "1.0.20"},
            "kernel": {"release": "6.1"},
            "unmet": [],
            "results": [{"variant": variant.name, "point": None, "classes": CLASSES}],
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
