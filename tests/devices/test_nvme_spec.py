# SPDX-License-Identifier: MIT OR Apache-2.0
"""Specs of NVMe SSDs: the lab and the module agree on each number, and refuse the same."""

import re
from typing import Any

import pytest
from steady_lab.devices.nvme import MDTS_KIB_MAX, NUMBERS, WRITE_SLOTS_MAX
from steady_lab.devices.spec import parse_device
from steady_lab.errors import SpecError
from steady_lab.paths import PROJECT

FOLDER = PROJECT / "lab" / "devices"
CAPACITY_MIB = 8192  # of the model's default; a spec must say it


def source(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def constant(name: str, file: str) -> int:
    match = re.search(rf"^#define {name}\s+(\d+)\b", source(file), re.MULTILINE)
    assert match, name
    return int(match[1])


def of_model() -> dict[str, tuple[int, int, int]]:
    """Lowest, highest and default of each number of the timing model."""
    found = re.findall(
        r"^\tNUMBER\((\w+), (\d+), (\d+)(?:ull)?, (\d+)\)", source("flash/ssd_params.c"), re.M
    )
    return {name: (int(low), int(high), int(preset)) for name, low, high, preset in found}


def of_controller() -> dict[str, tuple[int, int, int]]:
    """The same of the module's other parameters, which come in the order default, low, high."""
    names = {
        "SNVME_NAMESPACES_MAX": constant("SNVME_NAMESPACES_MAX", "nvme/steady_nvme.h"),
        "SNVME_QUEUES_MAX": constant("SNVME_QUEUES_MAX", "nvme/steady_nvme.h"),
        "MDTS_KIB_MAX": constant("SSD_COMMAND_SECTORS_MAX", "flash/ssd_params.h") // 2,
    }
    found = re.findall(
        r"^PARAM_NUMBER\((\w+), (\d+), (\d+), (\w+)\);", source("nvme/nvme_params.c"), re.MULTILINE
    )
    return {
        name: (int(low), names[high] if high in names else int(high), int(preset))
        for name, preset, low, high in found
    }


def smallest() -> dict[str, Any]:
    return {
        "schema": "steadyio.device/1",
        "kind": "nvme",
        "name": "smallest",
        "title": "Smallest",
        "source": "invented",
        "drive": {"capacity_mib": 8192},
    }


def test_lab_module_and_model_have_the_same_ranges_and_defaults() -> None:
    of_lab = {
        number.param: (
            number.low,
            number.high,
            CAPACITY_MIB if number.default is None else number.default,
        )
        for number in NUMBERS
    }
    assert of_lab == of_model() | of_controller()


def test_the_module_takes_each_number_of_the_model() -> None:
    taken = re.findall(
        r"^module_param_cb\((\w+), &drive_ops, &drive\.(\w+), 0444\);",
        source("nvme/nvme_params.c"),
        re.MULTILINE,
    )
    assert all(name == field for name, field in taken)
    assert sorted(name for name, _ in taken) == sorted(of_model())


def test_limits_that_the_lab_computes_are_those_of_the_sources() -> None:
    assert constant("SSD_COMMAND_SECTORS_MAX", "flash/ssd_params.h") // 2 == MDTS_KIB_MAX
    assert constant("SSD_WRITE_SLOTS_MAX", "flash/ssd_internal.h") == WRITE_SLOTS_MAX


@pytest.mark.parametrize(
    ("table", "key", "refused", "allowed", "words"),
    [
        ("host", "mdts_kib", 96, 128, "a power of two from 4 to 1024"),
        ("flash", "page_kib", 18, 20, "a multiple of 4 from 4 to 64"),
        ("flash", "read_planes", 3, 2, "a divisor of planes"),
        ("flash", "program_jitter_ns", 1528001, 1528000, "0 .*1528000"),
        ("gc", "reserve_lines", 6, 5, "2 .*5"),
        ("used", "hot_permille", 1, 0, "0 .*0"),
        ("house", "time_ns", 1, 0, "at least twice time_ns"),
        ("buffer", "kib", 115, 116, "at least 116"),
        # 9 lines of 8 x 92 x 96 KiB, and the map's 2 slots per 2048.
        ("drive", "spare_permille", 69, 70, "must hold 9 lines of 70656 KiB"),
    ],
)
def test_numbers_that_others_limit(
    table: str, key: str, refused: int, allowed: int, words: str
) -> None:
    spec = smallest()
    spec.setdefault(table, {})[key] = allowed
    parse_device(spec, "spec")
    spec[table][key] = refused
    with pytest.raises(SpecError, match=words):
        parse_device(spec, "spec")
