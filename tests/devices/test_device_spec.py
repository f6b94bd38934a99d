# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device specs: valid values pass; all others are rejected with key, value and range."""

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady_lab.devices import flash
from steady_lab.devices.emmc import EMMC, NUMBERS
from steady_lab.devices.kind import Kind, Number
from steady_lab.devices.scsi import SCSI
from steady_lab.devices.spec import DeviceSpec, load_device, parse_device
from steady_lab.errors import SpecError
from steady_lab.paths import GUEST_WORK, PROJECT

DEVICES = sorted((PROJECT / "experiments" / "devices").glob("*.toml"))
MODULES = PROJECT / "lab" / "devices"
FLASH_PARAMS = [MODULES / "flash" / f"card_params.{suffix}" for suffix in "hc"]
# Values that other values limit: checked on their own below.
RELATED = {"queue.depth", "read.jitter_ns", "write.jitter_ns", "slow.length_us"} | {
    "stall.low_us",
    "stall.high_us",
}
FREE = [number for number in NUMBERS if number.name not in RELATED]


def spec() -> dict[str, Any]:
    """The smallest spec there is."""
    return {
        "schema": "steadyio.device/1",
        "name": "smallest",
        "title": "Smallest",
        "source": "invented",
        "card": {"capacity_mib": 64},
        "read": {"base_ns": 1000, "per_kib_ns": 10},
        "write": {"base_ns": 2000, "per_kib_ns": 20},
    }


def at(name: str) -> str:
    """Return how errors name a key of a table."""
    table, key = name.split(".")
    return f"[{table}]: {key}"


def with_value(name: str, value: Any) -> dict[str, Any]:
    raw = copy.deepcopy(spec())
    table, key = name.split(".")
    raw.setdefault(table, {})[key] = value
    return raw


def parsed(raw: dict[str, Any]) -> DeviceSpec:
    return parse_device(raw, "spec")


def refused(raw: dict[str, Any], *parts: str) -> None:
    with pytest.raises(SpecError) as error:
        parsed(raw)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("path", DEVICES, ids=lambda path: path.stem)
def test_every_device_of_the_project_loads_and_is_named_after_its_file(path: Path) -> None:
    device = load_device(path)
    assert device.name == path.stem
    assert device.kind.name == device.raw.get("kind", "emmc")
    assert device.raw == tomllib.loads(path.read_text(encoding="utf-8"))
    assert device.module_params() == load_device(path).module_params()


@given(st.data())
def test_a_number_in_range_reaches_the_module_unchanged(data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(FREE))
    value = data.draw(st.integers(number.low, number.high))
    device = parsed(with_value(number.name, value))
    assert f"{number.param}={value}" in device.module_params()


@given(st.data())
def test_a_number_out_of_range_is_refused_by_name_value_and_range(data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(NUMBERS))
    value = data.draw(
        st.integers(max_value=number.low - 1) | st.integers(min_value=number.high + 1)
    )
    refused(with_value(number.name, value), at(number.name), repr(value), str(number.high))


@given(
    st.sampled_from(NUMBERS),
    st.booleans() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2),
)
def test_what_is_no_whole_number_is_refused(number: Number, value: object) -> None:
    refused(with_value(number.name, value), at(number.name), repr(value), "whole number")


@given(st.sampled_from(["", "card", "read", "slow", "backing"]), st.text(min_size=1, max_size=9))
def test_unknown_keys_are_refused(table: str, key: str) -> None:
    raw = spec()
    known = {number.key for number in NUMBERS} | {"product", "kind", "file", "fault"}
    known |= set(raw) | {number.table for number in NUMBERS} | {"backing"}
    if key in known:
        return
    target = raw.setdefault(table, {}) if table else raw
    target[key] = 1
    refused(raw, f"[{table}]: {key}" if table else key, "unknown key")


@pytest.mark.parametrize("name", [n.name for n in NUMBERS if n.default is None])
def test_required_numbers_are_required(name: str) -> None:
    raw = spec()
    table, key = name.split(".")
    del raw[table][key]
    refused(raw, at(name), "missing")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "steadyio.device/2"),
        ("name", "Upper"),
        ("name", None),
        ("title", ""),
        ("source", 7),
        ("kind", "ufs"),
        ("card", 7),
        ("fault", {}),
    ],
)
def test_bad_texts_are_refused(key: str, value: object) -> None:
    refused(spec() | {key: value}, key, repr(value))


@pytest.mark.parametrize(
    ("name", "good", "bad", "limit"),
    [
        ("queue.depth", 3, 2, "3 to 32"),
        ("read.jitter_ns", 1000, 1001, "0 to 1000"),
        ("write.jitter_ns", 2000, 2001, "0 to 2000"),
        ("slow.length_us", 0, 1, "0 to 0"),
        ("stall.high_us", 0, 1, "0 to 0"),
        ("stall.low_us", 0, 1, "0 to 0"),
    ],
)
def test_values_that_limit_each_other(name: str, good: int, bad: int, limit: str) -> None:
    parsed(with_value(name, good))
    refused(with_value(name, bad), at(name), repr(bad), limit)


def test_product_names_must_fit_a_card() -> None:
    assert "name=NCEMAD" in parsed(with_value("card.product", "NCEMAD")).module_params()
    for bad in ("", "SEVENCH", "A B", "\u00e9", 3):
        refused(with_value("card.product", bad), at("card.product"), repr(bad), "1 to 6")


def test_a_backing_file_lies_in_the_work_folder() -> None:
    raw = spec() | {"backing": {"kind": "file", "file": "card.img"}}
    assert f"path={GUEST_WORK}/card.img" in parsed(raw).module_params()
    for bad in ("/etc/passwd", "../x", ".hidden", "a b", "", None):
        refused(spec() | {"backing": {"kind": "file", "file": bad}}, at("backing.file"), repr(bad))
    refused(spec() | {"backing": {"kind": "disk"}}, at("backing.kind"), "'disk'")
    refused(spec() | {"backing": {"file": "card.img"}}, at("backing.file"))


def test_faults_become_words_for_the_module() -> None:
    raw = spec() | {
        "fault": [
            {"on": "read", "outcome": "error", "at_op": 3},
            {"on": "any", "outcome": "timeout", "sectors": [8, 15]},
            {"on": "flush", "outcome": "error", "ppm": 100},
        ]
    }
    assert parsed(raw).module_params()[-1] == (
        "fault=read:error:op:3,any:timeout:sectors:8-15,flush:error:ppm:100"
    )


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ({"on": "seek", "outcome": "error", "at_op": 1}, "[[fault]] 1: on = 'seek'"),
        ({"on": "read", "outcome": "melt", "at_op": 1}, "[[fault]] 1: outcome = 'melt'"),
        ({"on": "read", "outcome": "error"}, "exactly one of"),
        ({"on": "read", "outcome": "error", "at_op": 1, "ppm": 1}, "exactly one of"),
        ({"on": "read", "outcome": "error", "at_op": 0}, "[[fault]] 1: at_op = 0"),
        ({"on": "read", "outcome": "error", "ppm": 1_000_001}, "[[fault]] 1: ppm = 1000001"),
        ({"on": "read", "outcome": "error", "sectors": [9, 8]}, "[[fault]] 1: sectors = [9, 8]"),
        ({"on": "read", "outcome": "error", "sectors": 9}, "[[fault]] 1: sectors = 9"),
        (
            {"on": "read", "outcome": "error", "at_op": 1, "why": 1},
            "[[fault]] 1: why = 1",
        ),
        (7, "fault = [7]"),
    ],
)
def test_bad_faults_are_refused(fault: object, part: str) -> None:
    refused(spec() | {"fault": [fault]}, part)


def test_more_faults_than_the_module_takes_are_refused() -> None:
    fault = {"on": "read", "outcome": "error", "at_op": 1}
    parsed(spec() | {"fault": [fault] * 8})
    refused(spec() | {"fault": [fault] * 9}, "at most 8")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(SpecError, match="none.toml: cannot be read"):
        load_device(missing)
    missing.write_text("schema = ")
    with pytest.raises(SpecError, match="none.toml: not valid TOML"):
        load_device(missing)
    whole = (PROJECT / "experiments" / "devices" / "test-plain.toml").read_text()
    missing.write_text(f"colour = 3\n{whole}")
    with pytest.raises(SpecError, match="none.toml: colour = 3: unknown key"):
        load_device(missing)


@pytest.mark.parametrize("kind", [EMMC, SCSI], ids=lambda kind: kind.name)
def test_the_module_has_the_same_parameters_and_ranges(kind: Kind) -> None:
    own = MODULES / kind.name / f"{kind.name}_params.c"
    text = "".join(path.read_text(encoding="utf-8") for path in (*FLASH_PARAMS, own))
    constants = {"U64_MAX": "2**64 - 1", "FLASH_DEPTH_MAX": "32", "FLASH_UNITS_MAX": "16"} | {
        "FLASH_RUNS_MAX": "16"
    }
    constants |= dict(re.findall(r"#define (\w+_MAX)\s+(\d+)ull", text))

    def value(text: str) -> int:
        for name, number in constants.items():
            text = re.sub(rf"\b{name}\b", number, text)
        assert re.fullmatch(r"[\d* -]+", text), text
        return int(eval(text))  # digits and operators only, checked above

    found = {
        name: (value(low), value(high))
        for name, low, high in re.findall(
            r"^PARAM_NUMBER\((\w+), [^,]+, ([^,]+), (.+)\);$", text, re.M
        )
    }
    assert found == {number.param: (number.low, number.high) for number in kind.numbers}


def test_the_paper_s_card_has_the_same_times_behind_both_hosts() -> None:
    card, disk = (
        load_device(PROJECT / "experiments" / "devices" / f"foresee-ncemad9d-{host}.toml")
        for host in ("usb", "scsi")
    )
    shared = [number.param for number in flash.NUMBERS]
    assert [card.values[name] for name in shared] == [disk.values[name] for name in shared]
