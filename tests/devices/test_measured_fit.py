# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device fit FILE`: a user's measurement becomes a card, with its assumptions named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from steady_lab.cli import main
from steady_lab.devices.measured_fit import fit_file
from steady_lab.devices.names import device_file
from steady_lab.devices.spec import load_device
from steady_lab.errors import SpecError
from steady_lab.paths import PROJECT

pytestmark = pytest.mark.reads("lab", "experiments", "device")

PROFILE = PROJECT / "device" / "probe" / "tests" / "profile.toml"
FIO_PERCENTILES = (*(1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95), *(99, 99.5, 99.9, 99.95, 99.99))


def job(
    rw: str, bs: str, usual_us: float, count: int, pauses: int = 0, pause_us: float = 0
) -> dict[str, Any]:
    """Return a job as fio prints it: `pauses` of its requests take `pause_us` longer."""
    op = rw.removeprefix("rand")
    mean_us = usual_us + pauses / count * pause_us
    percentiles = {
        # Times are uniform in +- 2 % of the usual one.
        f"{p:.6f}": round(
            1000 * (usual_us * (0.98 + 0.04 * p / 100) + pause_us * (p / 100 > 1 - pauses / count))
        )
        for p in FIO_PERCENTILES
    }
    idle = {"total_ios": 0, "iops": 0.0, "clat_ns": {"min": 0, "max": 0, "mean": 0.0, "N": 0}}
    busy = {
        "total_ios": count,
        "iops": 1e6 / mean_us,
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "N": 0},
        "clat_ns": {"mean": mean_us * 1000, "N": count, "percentile": percentiles},
    }
    options = {"name": f"{rw}-{bs}", "rw": rw, "bs": bs}
    measured = {"read": idle, "write": idle} | {op: busy}
    return {"jobname": options["name"], "groupid": 0, "error": 0, "job options": options} | measured


def result() -> dict[str, Any]:
    """Return the run of a card: reads 150 us + 22 us/KiB, writes 400 us + 41 us/KiB and pauses."""
    return {
        "fio version": "fio-3.33",
        "timestamp": 1700000000,
        "global options": {"filename": "/dev/sda", "direct": "1", "ioengine": "psync"},
        "jobs": [
            job("read", "1m", 300 + 1024 * 22, 1300),
            job("randread", "4k", 150 + 4 * 22, 120_000),
            job("write", "1m", 800 + 1024 * 41, 640, 20, 200_000),
            job("randwrite", "4k", 400 + 4 * 41, 52_000, 6, 200_000),
        ],
        "disk_util": [{"name": "sda", "read_ios": 121_300, "write_ios": 52_640, "util": 99.7}],
    }


def written(folder: Path, raw: object) -> Path:
    path = folder / "my card.json"
    path.write_text(json.dumps(raw))
    return path


def test_a_run_of_fio_gives_the_card_behind_it(tmp_path: Path) -> None:
    fit = fit_file(written(tmp_path, result()), None)
    wanted = {"read_base_ns": 150_000, "read_per_kib_ns": 22_000, "read_jitter_ns": 4760} | {
        **{"write_base_ns": 400_000, "write_per_kib_ns": 41_000, "write_pause_ns": 200_000_000},
        "write_pause_kib": 32_768,
    }
    assert {key: fit.values[key] for key in wanted} == pytest.approx(wanted, rel=0.01)
    assert fit.values["read_jump_ns"] == fit.values["write_jump_ns"] == 0
    said = "\n".join(fit.notes.lines())
    for part in (
        "used: jobs 1 (read-1m): read.iops, read.clat_ns.percentile",
        "assumed: read.jump_ns = 0",
        "assumed: card.capacity_mib = 16384",
        "assumed: a card stands in for sda",
        "not known: writes that are rarer than one in 640",
        "fit: jobs 3 (write-1m): p99 us 24",
    ):
        assert part in said


def test_random_next_to_sequential_requests_give_the_jump(tmp_path: Path) -> None:
    raw = result()
    raw["jobs"] += [
        job("randread", "1m", 500 + 300 + 1024 * 22, 1300),
        job("read", "4k", 150 + 4 * 22, 99_000),
    ]
    raw["jobs"][1] = job("randread", "4k", 500 + 150 + 4 * 22, 99_000)
    fit = fit_file(written(tmp_path, raw), None)
    assert fit.values["read_jump_ns"] == pytest.approx(500_000, rel=0.01)
    assert fit.values["read_base_ns"] == pytest.approx(150_000, rel=0.01)
    assert "assumed: read.jump_ns" not in "\n".join(fit.notes.lines())


def test_steady_writes_have_no_pauses(tmp_path: Path) -> None:
    raw = result()
    raw["jobs"][2:] = [job("write", "1m", 42_784, 640), job("randwrite", "4k", 564, 52_000)]
    assert fit_file(written(tmp_path, raw), None).values["write_pause_ns"] == 0


def test_submission_is_part_of_an_asynchronous_request(tmp_path: Path) -> None:
    raw = result()
    before = fit_file(written(tmp_path, raw), None).values["read_base_ns"]
    for item in raw["jobs"][:2]:
        item["job options"]["ioengine"] = "libaio"
        commands = 2 if item["job options"]["bs"] == "1m" else 1
        item["read"]["slat_ns"]["mean"] = 20_000.0 * commands
    assert fit_file(written(tmp_path, raw), None).values["read_base_ns"] - before == 20_000


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"iodepth": "32", "ioengine": "libaio"}, "iodepth = 32: must be 1"),
        ({"direct": "0"}, "direct = 0: must be 1, or the page cache answers"),
        ({"numjobs": "4"}, "numjobs = 4: must be 1"),
        ({"rw": "randrw"}, "rw = randrw: must be one of read, write, randread, randwrite"),
        ({"fdatasync": "1"}, "fdatasync = 1: must be 0"),
        ({"bs": "4k,8k"}, "bs = 4k,8k: must be one size of 1 to 65536 KiB"),
        ({"bsrange": "4k-512k"}, "bsrange = 4k-512k: must be left out, or sizes are mixed"),
        ({"bssplit": "4k/10:64k/90"}, "bssplit = 4k/10:64k/90: must be left out"),
        ({"rate": "1m"}, "rate = 1m: must be 0"),
    ],
)
def test_a_job_of_no_use_is_left_out_by_option_and_value(
    options: dict[str, str], why: str, tmp_path: Path
) -> None:
    raw = result()
    raw["jobs"].append(job("randread", "64k", 9999, 1000))
    raw["jobs"][-1]["job options"] |= options
    fit = fit_file(written(tmp_path, raw), None)
    assert f"left out: jobs 5 (randread-64k): {why}" in "\n".join(fit.notes.lines())
    assert fit.values == fit_file(written(tmp_path, result()), None).values


def test_what_fio_warns_of_may_stand_around_its_result(tmp_path: Path) -> None:
    path = written(tmp_path, result())
    values = fit_file(path, None).values
    path.write_text(f"fio: a warning\n{path.read_text()}\nfio: another\n")
    assert fit_file(path, None).values == values


def test_a_synchronous_engine_has_one_request_whatever_its_depth(tmp_path: Path) -> None:
    raw = result()
    raw["jobs"][0]["job options"]["iodepth"] = "32"
    assert fit_file(written(tmp_path, raw), None).notes.left_out == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda raw: raw.pop("jobs"), "my card.json: jobs is missing: must be the jobs of fio"),
        (lambda raw: raw.pop("fio version"), "my card.json: fio version is missing"),
        (
            lambda raw: raw["jobs"][1]["read"]["clat_ns"].pop("percentile"),
            "[[jobs]] 2: [read]: [clat_ns]: percentile is missing: must be given: fio 3",
        ),
        (
            lambda raw: raw["jobs"][1]["read"].update(iops="fast"),
            "[[jobs]] 2: [read]: iops = 'fast': must be a number",
        ),
        (
            lambda raw: raw["jobs"][1]["read"]["clat_ns"]["percentile"].pop("50.000000"),
            "50.000000 = None: must be above 0: a percentile_list must have 50",
        ),
        (
            lambda raw: raw["jobs"].pop(2),
            "jobs: writes must be of two sizes, such as bs=4k and bs=1m; of use: jobs 3",
        ),
        (
            lambda raw: raw["jobs"].__setitem__(0, job("read", "1m", 90, 1300)),
            "jobs: read: medians must grow with the size: jobs 1 (read-1m): 90 us",
        ),
    ],
)
def test_an_error_names_file_field_and_what_is_allowed(
    change: Any, says: str, tmp_path: Path
) -> None:
    raw = copy.deepcopy(result())
    change(raw)
    with pytest.raises(SpecError) as error:
        fit_file(written(tmp_path, raw), None)
    assert says in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_what_is_neither_fio_nor_a_profile_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    for text, says in (
        ("{", "not valid JSON"),
        ("fio: error", "not valid TOML"),
        ('schema = "steadyio.device/1"', "must be one of steadyio.profile/1"),
    ):
        path.write_text(text)
        with pytest.raises(SpecError, match=says):
            fit_file(path, None)
    with pytest.raises(SpecError, match="cannot be read"):
        fit_file(tmp_path / "none", None)
    with pytest.raises(SpecError, match="--device test-nvme: must be of kind emmc"):
        fit_file(PROFILE, load_device(device_file("test-nvme")))


def test_a_card_has_what_a_run_of_reads_leaves_open(tmp_path: Path) -> None:
    raw = result()
    del raw["jobs"][2:]
    base = load_device(device_file("sd-typical"))
    fit = fit_file(written(tmp_path, raw), base)
    assert fit.values["read_base_ns"] == 150_000
    for key in ("write_base_ns", "write_pause_kib", "write_runs", "capacity_mib"):
        assert fit.values[key] == base.values[key]
    assert "assumed: [write]: that of sd-typical" in fit.notes.lines()


def test_a_profile_gives_its_card() -> None:
    fit = fit_file(PROFILE, None)
    assert fit.values == load_device(PROFILE).values
    said = "\n".join(fit.notes.lines())
    assert "used: [write]: all keys" in said
    assert "not known: seen.read.seconds = 20: what comes less often was not met" in said


def test_a_profile_of_reads_names_the_option_to_measure_writes(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    text = PROFILE.read_text()
    path.write_text(text[: text.index("[write]")] + text[text.index("[slow]") :])
    with pytest.raises(SpecError, match=r"profile.toml: \[write\] is missing.*--write"):
        fit_file(path, None)


@pytest.mark.parametrize("kind", ["fio", "profile"])
def test_the_command_writes_a_spec_that_boots_take(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = PROFILE if kind == "profile" else written(tmp_path, result())
    out = tmp_path / "My Card.toml"
    assert main(["device", "fit", str(file), "--out", str(out)]) == 0
    assert "used: " in capsys.readouterr().out
    spec = load_device(out)
    assert spec.name == "my-card"
    assert spec.values == fit_file(file, None).values
    assert main(["device", "fit", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# used: ")
    assert printed[printed.index("\n[card]") :] in out.read_text()
