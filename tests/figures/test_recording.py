# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings: their specs are checked, a boot becomes rows, and no difference stays unexplained."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.errors import LabError, SpecError
from steady_lab.figures.recording import classes_of, recording_script
from steady_lab.figures.results import read_result
from steady_lab.figures.spec import EXPERIMENTS, load_figures
from steady_lab.figures.workload import parse_workload
from steady_lab.kernels.build import LabKernel
from steady_lab.pages.recordings import calls_table, published_table
from steady_lab.pages.records import read_record
from steady_lab.pages.results import RECORDS
from steady_lab.toml_table import load_toml

RECORDING = EXPERIMENTS / "recordings" / "s4.toml"
TINY = Path(__file__).parent / "tiny-recording.toml"


@pytest.mark.parametrize(
    ("table", "key", "value", "said"),
    [
        ("length", "records", 0, "records = 0: must be a whole number from 1"),
        ("source", "period_us", 1.5, "period_us = 1.5: must be a whole number"),
        ("filesystem", "mkfs", ["-F", 1], "mkfs = "),
        ("filesystem", "type", "ext4", "type = 'ext4': unknown key"),
        ("background", "run", None, "run = None: must be shell commands"),
        ("background", "nice", 10, "nice = 10: unknown key"),
    ],
)
def test_a_wrong_value_is_named(table: str, key: str, value: object, said: str) -> None:
    raw = copy.deepcopy(load_toml(RECORDING))
    raw[table][key] = value
    with pytest.raises(SpecError) as caught:
        parse_workload(raw, "s4.toml")
    assert said in str(caught.value)


def test_what_the_shell_could_misread_is_quoted() -> None:
    raw = copy.deepcopy(load_toml(RECORDING))
    raw["filesystem"]["mkfs"] = ["-L", "two words; $(reboot)"]
    raw["background"]["run"] = "echo 'it works'"
    recording = parse_workload(raw, "s4.toml").recording
    assert recording is not None
    script = recording_script(recording, "steady", "pool", ["--segments=3"])
    assert "-L 'two words; $(reboot)' \"$STEADY_DEVICE\" 7067m" in script
    assert "sh -c 'echo '\"'\"'it works'\"'\"''" in script
    assert "--period=5000us --size=16KiB --segments=3 --dir /run/card/recording" in script
    assert "--total=160000KiB" in script


def test_a_pool_is_made_before_the_background_program_starts() -> None:
    recording = parse_workload(load_toml(RECORDING), "s4.toml").recording
    assert recording is not None
    script = recording_script(recording, "steady", "pool", [])
    assert 0 < script.find("--prepare") < script.find("background() {")
    assert "--prepare" not in recording_script(recording, "steady", "append-fdatasync", [])
    assert "--dir /run/recording" in recording_script(recording, "steady", "pool", [], "memory")


def test_class_bg_is_the_background_program_or_the_changes_of_file() -> None:
    raw = copy.deepcopy(load_toml(RECORDING))
    for run, source in (("dd", "dd:background.txt"), ("", "recording-changes:recording.json")):
        raw["background"]["run"] = run
        recording = parse_workload(raw, "s4.toml").recording
        assert recording is not None
        assert classes_of(recording) == ("rt=recording:recording.json", f"bg={source}")


def test_a_boot_becomes_rows(base_kernel: LabKernel, work: Path) -> None:
    assert main(["run", str(TINY), "--build", str(work), "--jobs", "1"]) == 0
    result = read_result(work / "results" / "tiny-recording.json")
    rows = {(row.variant, row.class_name): row for row in result.measured.rows}
    assert rows["append-fdatasync", "rt"].op == "write"
    assert rows["pool", "rt"].op == "append"
    assert {rows[variant, "rt"].count for variant in ("append-fdatasync", "pool")} == {200}
    assert (rows["pool", "bg"].mib_s or 0) > 1
    (figure,) = load_figures(TINY)
    assert "| pool (ours) | `pool` | 200 | 0 | 0 | 0 | 0 | 0 |" in calls_table(figure, result)


def test_a_difference_to_s4_without_a_reason_is_refused() -> None:
    figure = next(f for f in load_figures("s4-table1") if f.name == "s4-table1-cache")
    recorded = read_record(figure, RECORDS)
    assert "| ALL-BGall | Table 1 | 88 | 12482 | 12394 | 0 |" in published_table(figure, recorded)
    published = tuple(replace(item, reason="") for item in figure.published)
    with pytest.raises(LabError, match="append-fdatasync, Table 1: needs a `reason`"):
        published_table(replace(figure, published=published), recorded)


def test_every_column_of_s4s_table_1_has_its_values() -> None:
    for figure in load_figures("s4-table1"):
        stated = {item.cell.variant for item in figure.published}
        assert {v.name for v in figure.workload.variants} - stated == {"pool"}
        assert len(stated) == 12
        assert len(figure.published) == 24
