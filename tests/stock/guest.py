# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run a script of the tests under QEMU, on three CPUs: on a stock kernel, or on any other."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from steady_lab.kernels.stock import stock_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.qemu import PROGRAM, BootKernel, Qemu
from steady_lab.targets.target import BootRequest, BootResult

sys.path.insert(0, str(PROJECT / "tests"))
from kernel_scripts import build_helpers, helpers_folder

CPUS = 3
# How long it takes says something about this machine only; this ends what hangs.
TIMEOUT_S = 900

needs_qemu = pytest.mark.skipif(not shutil.which(PROGRAM), reason=f"{PROGRAM} is not installed")


# I/Os of each process. The emulated cards take several ms for each.
IOS, IOS_CARD = 150, 30


def run(
    script: Path,
    name: str,
    work: Path,
    disks: Sequence[str] = (),
    modules: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
) -> BootResult:
    return run_on(stock_kernel(name), script, work, disks, modules, timeout_s=timeout_s)


def run_on(
    kernel: BootKernel,
    script: Path,
    work: Path,
    disks: Sequence[str] = (),
    modules: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    reserved_mib: int = 0,
    arguments: Sequence[str] = (),
) -> BootResult:
    """`environment`: more than what each script finds there; `arguments`: the script's."""
    build_helpers(architecture=kernel.architecture)
    helpers = helpers_folder(kernel.architecture).relative_to(PROJECT)
    variables = {
        "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
        "STEADY_STOCK": f"{GUEST_PROJECT}/tests/stock",
        "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/{helpers}",
        "STEADY_KERNEL": kernel.release,
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_DEVICES": f"{GUEST_PROJECT}/experiments/devices",
        "STEADY_IOS": str(IOS_CARD if {"sd", "emmc"} & set(disks) else IOS),
        **(environment or {}),
    }
    command = ["sh", f"{GUEST_PROJECT}/{script.relative_to(PROJECT)}", *arguments]
    request = BootRequest(
        command, work, modules=modules, environment=variables, timeout_s=timeout_s
    )
    result = Qemu(kernel, CPUS, tuple(disks), reserved_mib=reserved_mib).boot(request)
    print(result.output)
    return result


def assert_programs_counted_right(work: Path) -> None:
    """Of what programs.sh left: 300 records, four times 50 writes and what they computed, 200
    real-time reads twice."""

    def found(name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((work / name).read_text(encoding="utf-8"))
        return document

    books = found("record.json")["ledger"]["total"]
    assert books["received"]["records"] == 300
    lost = books["lost_ring_full"]["records"] + books["lost_in_writing"]["records"]
    assert books["durable"]["records"] + lost == 300
    assert _messages(found("recover.json")) == books["durable"]["records"]
    trace = found("trace.json")
    account = trace["account"]
    assert account["unmatched"] == account["events_lost"] == account["ios_incomplete"] == 0
    assert sum(one["count"] for one in trace["ios"] if one["size_bytes_max"] == 65536) == 200
    writers = [one["cpu_per_io"] for one in trace["threads"] if one["comm"] == "dd"]
    assert len(writers) == 4
    (task,) = found("bound.json")["tasks"]
    computes = task["cpu_from_trace"]
    # Each writes 50 times: 49 times from one end to the next, and with its sync more.
    assert computes["ios"] == sum(one["count"] for one in writers) >= 4 * 49
    assert computes["cpu_us"] == -(-max(one["max_ns"] for one in writers) // 1000) > 0
    results = found("bench.json")["results"]
    assert {one["variant"]: one["classes"]["rt"]["count"] for one in results} == {
        "none": 200,
        "k2": 200,
    }


def assert_c_recorded(work: Path) -> None:
    """The records that the example of C counts as durable are found: of two channels, 300 each."""
    account = re.findall(r"received 300, durable (\d+), lost (\d+)", (work / "from-c").read_text())
    assert [int(durable) + int(lost) for durable, lost in account] == [300, 300]
    recovered = json.loads((work / "recover-from-c.json").read_text(encoding="utf-8"))
    assert _messages(recovered) == sum(int(durable) for durable, _ in account)


def _messages(recovered: dict[str, Any]) -> int:
    contents = [file["contents"] for file in recovered["files"]]
    channels = [one for some in contents if some for one in some["channels"]]
    return sum(one["messages"] for one in channels)
