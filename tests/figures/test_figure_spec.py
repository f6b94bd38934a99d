# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figure specs are read strictly: an error names the key, the value and the valid values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import figure_sample
import pytest
from steady_lab.devices.spec import load_device
from steady_lab.errors import SpecError
from steady_lab.figures.loads import BenchLoad
from steady_lab.figures.panels import expand, take_settings
from steady_lab.figures.spec import EXPERIMENTS, load_figure, load_figures
from steady_lab.figures.workload import read_workload
from steady_lab.toml_table import Table

Raw = dict[str, Any]
APPLICATION = EXPERIMENTS / "applications" / "s1-oltp.toml"
RECORDING = EXPERIMENTS / "recordings" / "s4.toml"
WORKLOAD = figure_sample.HERE / "tiny-workload.toml"
SHIPPED = sorted((EXPERIMENTS / "figures").glob("*.toml"))


def drop(*keys: str) -> Callable[[Raw], object]:
    """Return a change that removes one key, found by its path of keys."""
    return lambda raw: inner(raw, keys[:-1]).pop(keys[-1])


def put(value: object, *keys: str) -> Callable[[Raw], object]:
    """Return a change that sets one key, found by its path of keys."""
    return lambda raw: inner(raw, keys[:-1]).__setitem__(keys[-1], value)


def inner(raw: Raw, keys: tuple[str, ...]) -> Any:
    """Follow keys; an array of tables stands for its first table."""
    for key in keys:
        raw = raw[key][0] if isinstance(raw[key], list) else raw[key]
    return raw


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (drop("title"), ["title is missing", "non-empty string"]),
        (put("", "title"), ["title = ''", "non-empty string"]),
        (put("steadyio.figure/9", "schema"), ["schema = 'steadyio.figure/9'", "steadyio.figure/1"]),
        (put("Tiny!", "name"), ["name = 'Tiny!'", "a string like"]),
        (put(1, "colour"), ["colour = 1", "unknown key"]),
        (put("rt.p98_ms", "plot", "y_metric"), ["y_metric = 'rt.p98_ms'", "rt.p99_ms"]),
        (put(["k3"], "plot", "highlight"), ["highlight = ['k3']", "k2, k2-split4"]),
        (put([], "plot", "highlight"), ["highlight = []", "non-empty array"]),
        (put(8, "plot", "detail_point"), ["detail_point = 8", "4, 512"]),
        (put(True, "plot", "detail_point"), ["detail_point = True", "4, 512"]),
        (put("k3", "published", "variant"), ["[[published]] 1", "variant = 'k3'", "k2-split4"]),
        (put(-1, "published", "value"), ["value = -1", "from 0 to"]),
        (put("nan", "published", "value"), ["value = 'nan'", "a number"]),
        (put(float("nan"), "published", "value"), ["value = nan", "a number"]),
        (put("mean", "check", "kind"), ["kind = 'mean'", "cell, ratio, spread, lowest"]),
        (drop("check", "min"), ["(split-against-k2)", "min = None", "cannot fail"]),
        (put(1.0, "check", "max"), ["min = 2.0", "at most max = 1"]),
        (put(7, "check", "of", "points"), ["points = 7", "unknown key"]),
        (drop("check", "to"), ["to is missing", "a table [to]"]),
        (put("{gain} {loss}", "summary", "text"), ["text = ", "{gain}", "not {loss}"]),
        (put("{gain:.9f}", "summary", "text"), ["text = ", "{gain}"]),
        (put("nothing", "summary", "text"), ["quotes the value 'gain'"]),
        (put("{gain", "summary", "text"), ["placeholders"]),
        (put("k2", "summary"), ["summary = 'k2'", "a table [summary]"]),
    ],
)
def test_bad_figure_is_refused(change: Callable[[Raw], object], says: list[str]) -> None:
    raw = figure_sample.figure_raw()
    change(raw)
    with pytest.raises(SpecError) as caught:
        figure_sample.figure(raw)
    for words in says:
        assert words in str(caught.value)


def test_duplicate_check_is_refused() -> None:
    raw = figure_sample.figure_raw()
    raw["check"].append(dict(raw["check"][0]))
    with pytest.raises(SpecError, match="split-against-k2.*used once"):
        figure_sample.figure(raw)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (drop("variant"), ["variant is missing"]),
        (put("k2-split4", "variant", "name"), ["names must differ"]),
        (put("../up", "variant", "name"), ["name = '../up'", "a string like"]),
        (put([], "sweep", "values"), ["values = []", "non-empty array"]),
        (put([4, 4], "sweep", "values"), ["values = [4, 4]", "different"]),
        (put([True], "sweep", "values"), ["values = [True]", "numbers or strings"]),
        (put(-1, "seed"), ["seed = -1", "from 0 to"]),
        (put("steadyio.workload/2", "schema"), ["steadyio.workload/1"]),
    ],
)
def test_bad_workload_is_refused(change: Callable[[Raw], object], says: list[str]) -> None:
    raw = figure_sample.workload_raw()
    change(raw)
    with pytest.raises(SpecError) as caught:
        figure_sample.figure(workload=raw)
    for words in says:
        assert words in str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_figure_loads(path: Path) -> None:
    for figure in load_figures(path):
        assert figure.checks, f"{figure.name}: a shipped figure claims something"
        assert figure.name.startswith(path.stem)


def test_a_reference_means_a_figure_or_one_of_its_panels() -> None:
    names = [figure.name for figure in load_figures("s1-fig5")]
    assert names == [f"s1-fig5-{op}" for op in ("randread", "read", "randwrite", "write")]
    panel = load_figure("s1-fig5-randwrite")
    assert panel.settings == {"rt.op": "randwrite", "bg.op": "randwrite"}
    assert [job["op"] for job in panel.workload.raw["job"]] == ["randwrite", "randwrite"]
    assert load_figure(panel.where).raw == panel.raw
    with pytest.raises(SpecError, match="must be one of s1-fig5-randread, s1-fig5-read"):
        load_figure("s1-fig5")
    with pytest.raises(SpecError, match="s1-fig5-readrand.toml: cannot be read: no such file"):
        load_figures("s1-fig5-readrand")


PANELS: Raw = {
    "panel": [
        {"name": "few", "title": "few", "set": {"length.ios": 100}},
        {"name": "many", "title": "many", "set": {"length.ios": 1000, "rt.bs_kib": 4}},
    ]
}


def test_panels_are_figures_of_their_own() -> None:
    raw = figure_sample.figure_raw() | PANELS
    raw["check"][0]["panels"] = ["many"]
    few, many = expand(raw, "figure")
    assert (few["name"], many["name"]) == ("tiny-few", "tiny-many")
    assert few["title"] == "Two variants, two sizes & <few> I/Os: few"
    assert [len(each["check"]) for each in (few, many)] == [1, 2]
    assert len(few["published"]) == len(many["published"]) == 1
    workload = read_workload(WORKLOAD, take_settings(Table(many, "f")), "f")
    assert (workload["length"]["ios"], workload["job"][0]["bs_kib"]) == (1000, 4)
    assert figure_sample.figure(many, workload).settings["rt.bs_kib"] == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put(["most"], "check", "panels"), ["panels = ['most']", "few, many"]),
        (put([], "published", "panels"), ["panels = []", "few, many"]),
        (put("few", "panel"), ["panel = 'few'", "tables [[panel]]"]),
        (put([], "panel"), ["[[panel]]", "one or more"]),
        (put("many", "panel", "name"), ["different names"]),
        (drop("panel", "title"), ["[[panel]] 1", "title is missing"]),
        (put(1, "panel", "colour"), ["[[panel]] 1", "colour = 1", "unknown key"]),
    ],
)
def test_bad_panels_are_refused(change: Callable[[Raw], object], says: list[str]) -> None:
    raw = copy.deepcopy(figure_sample.figure_raw() | PANELS)
    change(raw)
    with pytest.raises(SpecError) as caught:
        expand(raw, "figure")
    for words in says:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rt.op": True}, "rt.op = True: must be a whole number or a string"),
        ("rt.op", "set = 'rt.op': must be a table [set]"),
    ],
)
def test_bad_settings_are_refused(settings: object, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        take_settings(Table(figure_sample.figure_raw() | {"set": settings}, "f"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("workload", "key", "says"),
    [
        (WORKLOAD, "rt.depth_max", 'f: .*tiny-workload.toml: cannot set "rt.depth_max"'),
        (WORKLOAD, "rt.bs_kib", "f: .*with rt.bs_kib = 0: .*must be 1 to 65536"),
        (APPLICATION, "length.ios", r"f: \[set\] length.ios = 0: .*application.KEY"),
        (APPLICATION, "source.record_kib", r"f: \[set\] source.record_kib = 0"),
        (RECORDING, "title", r"f: \[set\] title = 0"),
        (RECORDING, "filesystem.mib", r"f: \[set\] filesystem.mib = 0"),
    ],
)
def test_a_key_that_cannot_be_set_is_named(workload: Path, key: str, says: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){says}"):
        read_workload(workload, {key: 0}, "f")


def test_applications_and_recordings_are_set_by_the_lab() -> None:
    recording = read_workload(RECORDING, {"length.records": 7, "background.run": "dd"}, "f")
    assert (recording["length"]["records"], recording["background"]["run"]) == (7, "dd")
    application = read_workload(APPLICATION, {"application.background": "write"}, "f")
    assert application["application"]["background"] == "write"


def test_variants_may_be_on_other_devices() -> None:
    figure = load_figure(Path(__file__).parent / "tiny-threads.toml")
    assert figure.device_file_of("cq-on").name == "s5-zynq-emmc-32gb.toml"
    assert figure.device_file_of("cq-off").name == "s5-zynq-emmc-32gb-noqueue.toml"


@pytest.mark.parametrize(
    ("devices", "says"),
    [
        ({"k3": "test-queue"}, r"\[devices\]: k3 = 'test-queue': unknown key"),
        ({"k2": 1}, r"\[devices\]: k2 = 1: must be a string like"),
        ("test-queue", r"devices = 'test-queue': must be a table \[devices\]"),
    ],
)
def test_bad_devices_of_variants_are_refused(devices: object, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        figure_sample.figure({**figure_sample.figure_raw(), "devices": devices})


def test_points_can_be_chosen() -> None:
    chosen = figure_sample.figure({**figure_sample.figure_raw(), "points": [512, 4]})
    assert chosen.workload.points == (4, 512)
    few = load_figure("every-10-ms")
    assert few.shown_points == ("every 10 ms",)
    assert "--point=real-time alone" in BenchLoad(few).command(load_device(few.device_file), "none")


@pytest.mark.parametrize("points", [[8], [4, 4], []])
def test_bad_points_are_refused(points: list[int]) -> None:
    with pytest.raises(SpecError, match="points = "):
        figure_sample.figure({**figure_sample.figure_raw(), "points": points})


def test_file_and_name_must_agree(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text((figure_sample.HERE / "tiny.toml").read_text(encoding="utf-8"))
    with pytest.raises(SpecError, match="name = 'tiny'.*'other'"):
        load_figure(other)


def test_missing_device_names_the_place_to_put_it(tmp_path: Path) -> None:
    text = (figure_sample.HERE / "tiny.toml").read_text(encoding="utf-8")
    file = tmp_path / "tiny.toml"
    file.write_text(text.replace("foresee-ncemad9d-usb", "no-such-device"))
    with pytest.raises(SpecError, match="device = 'no-such-device'.*experiments/devices"):
        load_figure(file)


def test_unreadable_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="absent.toml: cannot be read"):
        load_figure(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    with pytest.raises(SpecError, match="broken.toml: not valid TOML"):
        load_figure(broken)
