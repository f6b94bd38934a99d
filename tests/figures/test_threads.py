# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads on a host in the lab: as fast as the model says; only the queue differs."""

from __future__ import annotations

import math
from pathlib import Path

import figure_sample
import pytest
from steady_lab.cli import main
from steady_lab.devices.transfer_fit import load_transfers
from steady_lab.errors import LabError
from steady_lab.figures.metric import METRICS
from steady_lab.figures.results import read_result
from steady_lab.figures.rows import Measurements, read_csv
from steady_lab.figures.spec import EXPERIMENTS, load_figure, load_figures
from steady_lab.kernels.build import LabKernel
from steady_lab.kernels.source import release_folder
from steady_lab.pages.blocks import measured_in
from steady_lab.pages.results import RECORDS
from steady_lab.pages.threads import predicted_mib_s, threads_markdown
from steady_lab.root import steady_command
from steady_lab.root.steady_command import steady_json
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import Uml
from steady_lab.toml_table import load_toml

TINY = Path(__file__).parent / "tiny-threads.toml"
SPANS = load_toml(EXPERIMENTS / "spans" / "s5.toml")["spans"]
# Each sleep and each reading of the clock moves virtual time by about 256 ns.
TOLERANCE = 0.01


def test_threads_are_as_fast_as_the_model_says(base_kernel: LabKernel, work: Path) -> None:
    assert main(["run", str(TINY), "--build", str(work), "--jobs", "1"]) == 0
    result = read_result(work / "results" / "tiny-threads.json")
    mib_s = {
        (row.variant, int(row.point)): row.value(METRICS["rt.mib_s"])
        for row in result.measured.rows
        if row.class_name == "rt"
    }
    # 100 + 524 + 50 us by itself; four threads wait for the card, with a queue for its bus.
    assert math.isclose(mib_s["cq-off", 1], 64 / 1024 / 674e-6, rel_tol=TOLERANCE)
    assert math.isclose(mib_s["cq-off", 4], 64 / 1024 / 524e-6, rel_tol=TOLERANCE)
    assert math.isclose(mib_s["cq-on", 1], mib_s["cq-off", 1], rel_tol=TOLERANCE)
    assert mib_s["cq-on", 4] < 64 / 1024 / (64 * 2.56e-6), "data crosses one bus"

    devices = result.document["device"]["spec"]["variants"]
    assert ("queue" in devices["cq-on"], "queue" in devices["cq-off"]) == (True, False)
    text = threads_markdown(load_figure(TINY), result.measured)
    predicted = 200 * 64 / 1024 / (674e-6 + 199 * 524e-6)
    assert f"| 4 | {predicted:.2f} | {mib_s['cq-off', 4]:.2f} | {mib_s['cq-on', 4]:.2f} |" in text
    assert "| 4 | - |" not in text


def test_speeds_on_6_12_are_those_on_6_1() -> None:
    folder = release_folder(RECORDS.parent, "6.12") / RECORDS.name
    for figure in (*load_figures("s5-fig12"), *load_figures("s5-table2")):
        older, newer = (measured_in(figure, records) for records in (RECORDS, folder))
        for row in older.rows:
            then, now = row.mib_s, newer.row(row.variant, row.point, row.class_name).mib_s
            assert then is not None and now is not None
            assert math.isclose(now, then, rel_tol=0.002), (row, now)


def test_threads_give_the_same_bytes_twice(base_kernel: LabKernel, work: Path) -> None:
    made = []
    for name in ("first", "second"):
        assert main(["run", str(TINY), "--build", str(work / name), "--jobs", "2"]) == 0
        made.append((work / name / "results" / "tiny-threads.json").read_bytes())
    assert made[0] == made[1]


def test_a_workload_without_a_host_has_no_such_table() -> None:
    figure = figure_sample.figure()
    measured = Measurements([])
    with pytest.raises(LabError, match="tiny: its workload has no \\[host\\]"):
        threads_markdown(figure, measured)


@pytest.mark.parametrize("name", ["s5-fig12", "s5-table2"])
def test_hosts_take_the_times_that_s5_prints(name: str) -> None:
    """The [host] has those of the software, the device that of the card."""
    printed = {(s["op"], s["size_bytes"], s["pre_us"], s["post_us"]) for s in SPANS}
    found = set()
    for panel in load_figures(name):
        (job,), host = panel.workload.raw["job"], panel.workload.raw["host"]
        op = job["op"].removeprefix("rand")
        if not panel.name.endswith("-card"):
            found.add((op, job["bs_kib"] * 1024, host["pre_us"], host["post_us"]))
        cards = {t.device for t in load_transfers() if (t.op, t.kib) == (op, job["bs_kib"])}
        assert cards == {panel.device_file.stem}
    assert found
    assert found <= printed


@pytest.mark.parametrize("name", ["s5-fig12", "s5-table2"])
def test_without_a_queue_the_records_are_as_fast_as_the_model(name: str) -> None:
    seen = 0
    for panel in load_figures(name):
        measured = read_csv(RECORDS / f"{panel.name}.csv")
        tolerance = 0.011 if panel.name.endswith("-card") else 0.004
        for threads, mib_s in predicted_mib_s(panel).items():
            ours = measured.value("cq-off", threads, METRICS["rt.mib_s"])
            assert mib_s * (1 - tolerance) < ours < mib_s, f"{panel.name}, {threads} threads"
            seen += 1
    assert seen == {"s5-fig12": 30, "s5-table2": 20}[name]


def test_transfer_times_are_those_of_the_spans() -> None:
    spans = {(s["op"], s["size_bytes"], s["device_us"]) for s in SPANS}
    assert {(t.op, t.kib * 1024, t.us) for t in load_transfers()} == spans


def test_a_command_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="steady model no-such-file: status 2: .*no-such-file"):
        steady_json("model", "no-such-file")
    (tmp_path / "steady").touch()
    monkeypatch.setattr(steady_command, "STEADY", tmp_path / "steady")
    with pytest.raises(LabError, match="cannot be run .*steady-lab root steady"):
        steady_json("model", "no-such-file")


COMMANDS = """
cd /sys/kernel/tracing || exit
echo 1 >events/mmc/mmc_request_start/enable
dd if=/dev/mmcblk0 of=/dev/null bs=64K count=10 iflag=direct status=none
echo writes >trace_marker
dd if=/dev/zero of=/dev/mmcblk0 bs=64K count=10 oflag=direct status=none
cat trace
"""


@pytest.mark.parametrize(
    ("card", "more"), [("s5-zynq-emmc-32gb-noqueue", [1, 2]), ("s5-zynq-emmc-32gb", [0, 0])]
)
def test_a_queue_saves_the_commands_that_a_host_counts(
    card: str, more: list[int], base_kernel: LabKernel, work: Path
) -> None:
    """As device/bench/src/host/load.rs has them."""
    device = EXPERIMENTS / "devices" / f"{card}.toml"
    command = ["sh", "-c", "mount -t tracefs none /sys/kernel/tracing\n" + COMMANDS]
    result = Uml(base_kernel).boot(BootRequest(command, work, device=device))
    parts = result.output.split("writes\n")
    assert len(parts) == 2, result.output
    taken = [part.count("sbc_opcode=23") + part.count("cmd_opcode=13 ") for part in parts]
    assert taken == [10 * each for each in more]
