# SPDX-License-Identifier: MIT OR Apache-2.0
"""The e.MMC analysis paper's spans on a real kernel: page and picture are what the traces give."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.commands import results as results_command
from steady_lab.errors import LabError, SpecError
from steady_lab.figures import traced_loads
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.figures.traced_loads import load_traced_loads
from steady_lab.pages.results import RECORDS, SPANS_PICTURES
from steady_lab.pages.spans import spans_markdown
from steady_lab.pages.spans_findings import findings_table
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.traced_runs import RUNS_FILE, Key, add_runs, all_keys, read_runs, write_record

LOADS = load_traced_loads("s5")
TRACES = RECORDS / "traces-s5"
KEY = all_keys(LOADS)[0]
PLACES = {place.name: place for place in LOADS.places}


def changed(path: Path, longer_ns: int) -> None:
    """Make the submissions of a record this much longer."""
    record = json.loads(path.read_text(encoding="utf-8"))
    (group,) = (g for g in record["ios"] if g["size_bytes_max"] == KEY.size_kib << 10)
    for figures in (group["total"], group["spans"][0]):
        figures["mean_ns"] += longer_ns
    path.write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A copy of the committed records, next to those of the other kernel."""
    shutil.copytree(RECORDS.parent / "6.12", tmp_path / "6.12")
    return Path(shutil.copytree(RECORDS, tmp_path / "records"))


def test_a_page_that_differs_from_the_traces_fails_the_check(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(records / TRACES.name / f"{KEY.name}.json", 1_000_000)
    monkeypatch.setattr(results_command, "RECORDS", records)
    assert main(["results", "--check"]) == 1
    stale = capsys.readouterr().err
    assert "s5.md: differs" in stale
    assert "s5-spans.svg: differs" in stale


def test_a_missing_trace_is_named(records: Path) -> None:
    (records / TRACES.name / f"{KEY.name}.json").unlink()
    with pytest.raises(LabError, match=rf"{KEY.name}\.json: cannot be read"):
        spans_markdown("s5", records)


def test_a_trace_without_the_load_is_refused(records: Path) -> None:
    folder = records / TRACES.name
    shutil.copyfile(folder / f"{all_keys(LOADS)[-1].name}.json", folder / f"{KEY.name}.json")
    with pytest.raises(LabError, match=r"has no write of 128 KiB"):
        spans_markdown("s5", records)


def test_the_models_speed_is_that_of_the_spans() -> None:
    for run in read_runs(all_keys(LOADS), TRACES).runs:
        spans_us = sum(run.span(name)["mean_ns"] for name in SPANS) / 1000
        expected = run.key.size_kib / 1024 / spans_us * 1e6
        assert math.isclose(run.limits_mib_s["single_thread"], expected, rel_tol=1e-3), run.key


def test_the_run_that_is_shown_is_that_in_the_middle() -> None:
    for run in read_runs(all_keys(LOADS), TRACES).runs:
        totals_us = sorted(sum(means[f"{name}_us"] for name in SPANS) for means in run.of_runs)
        assert len(totals_us) == LOADS.runs, run.key
        assert math.isclose(run.total_us, totals_us[LOADS.runs // 2], rel_tol=1e-3), run.key


def test_a_statement_holds_for_the_pairs_of_which_it_is_true_in_most_runs(records: Path) -> None:
    place, path = PLACES["ext4"], records / TRACES.name / RUNS_FILE
    keys = [key for key in all_keys(LOADS) if key.place == place]
    name = next(key.name for key in keys if key.load.name == "direct-randread")

    def held_with_longer(runs: int) -> int:
        document = json.loads((TRACES / RUNS_FILE).read_text(encoding="utf-8"))
        for means in document["runs"][name][:runs]:
            means["submission_us"] += 1e6
        path.write_text(json.dumps(document), encoding="utf-8")
        table = findings_table(read_runs(keys, records / TRACES.name), [place])
        return int(table.body[0][1].split()[0])

    assert held_with_longer(LOADS.runs // 2) == held_with_longer(0)
    assert held_with_longer(LOADS.runs // 2 + 1) == held_with_longer(0) - 1


def test_what_is_measured_again_takes_the_place_of_what_was(records: Path, tmp_path: Path) -> None:
    document = json.loads((TRACES / RUNS_FILE).read_text(encoding="utf-8"))
    machine = {"fio": "0", "cpus": 7}
    more = document | {"machines": {"raw": machine}, "runs": {KEY.name: []}}
    (tmp_path / RUNS_FILE).write_text(json.dumps(more), encoding="utf-8")
    add_runs(tmp_path, records / TRACES.name)
    found = json.loads((records / TRACES.name / RUNS_FILE).read_text(encoding="utf-8"))
    assert found["machines"] == document["machines"] | {"raw": machine}
    assert found["runs"] == document["runs"] | {KEY.name: []}


def test_records_hold_no_names_of_machines(tmp_path: Path) -> None:
    record = json.loads((TRACES / f"{KEY.name}.json").read_text(encoding="utf-8"))
    record["kernel"]["release"] = "6.1.0-25-host"
    assert write_record(KEY, json.dumps(record), tmp_path)["kernel"]["release"] == "6.1.0"
    for path in TRACES.glob("*-*k-*.json"):
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(r"[0-9.]+", json.loads(text)["kernel"]["release"])
        assert '"/' not in text, path


def test_each_bar_of_the_picture_is_a_whole_io() -> None:
    (picture,) = SPANS_PICTURES
    text = picture.read_text(encoding="utf-8")
    colours = "|".join(colour.lower() for _, colour in SPANS.values())
    part = rf'<path d="M (\S+) (\S+)\s+L (\S+) [^"]*" clip-path="(\S+)" style="fill: (?:{colours})"'
    widths: dict[tuple[str, str], float] = {}
    for left, y, right, panel in re.findall(part, text):
        widths[panel, y] = widths.get((panel, y), 0) + float(right) - float(left)
    assert len(widths) == len(all_keys(LOADS))
    assert max(widths.values()) - min(widths.values()) < 1e-3


def test_a_published_share_of_no_load_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXPERIMENTS / "traces" / "s5.toml").read_text(encoding="utf-8")
    (tmp_path / "traces").mkdir()
    wrong = text.replace('loads = ["sync-write",', 'loads = ["async-write",', 1)
    (tmp_path / "traces" / "s5.toml").write_text(wrong, encoding="utf-8")
    monkeypatch.setattr(traced_loads, "EXPERIMENTS", tmp_path)
    with pytest.raises(SpecError, match=r"async-write.*no such load or size"):
        load_traced_loads("s5")


def test_a_record_is_named_after_place_size_and_load() -> None:
    assert Key(PLACES["raw"], 4, LOADS.loads[-1]).name == "raw-4k-direct-randread"
    assert {path.stem for path in TRACES.glob("*-*k-*.json")} == {k.name for k in all_keys(LOADS)}
