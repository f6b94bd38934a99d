# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady tune` against measuring everything, on the emulated SSD; `make soak` runs it.

The SSD example of docs/reference/steady-tune.md, some ten minutes.
"""

import json
from pathlib import Path
from typing import Any

from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

DRIVE = PROJECT / "experiments" / "devices" / "samsung-970-evo-plus-250gb.toml"
WORKLOAD = f"{GUEST_PROJECT}/experiments/workloads/k2-ssd.toml"
TUNE = (
    f"{GUEST_PROJECT}/build/bin/steady tune /dev/nvme0n1 {WORKLOAD} --point 'every 2 ms' "
    "--quantile 99 --set length.ios=400 --knob rt_block_us=0 --knob inflight_max"
)
TIMEOUT_S = 3600


def tuned(work: Path, name: str, arguments: str) -> dict[str, Any]:
    command = f"{TUNE} {arguments} --out {name}.json"
    request = BootRequest(["sh", "-c", command], work, device=DRIVE, timeout_s=TIMEOUT_S)
    result = uml().boot(request)
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    report: dict[str, Any] = json.loads((work / f"{name}.json").read_text(encoding="utf-8"))
    return report


def runs(report: dict[str, Any]) -> int:
    return len(report["points"]) + (report["none"] is not None)


def test_search_picks_what_measuring_everything_picks_in_a_third_of_its_runs(work: Path) -> None:
    for name, goal in (("o1", "--tail-max 30%"), ("o2", "--throughput-min 50%")):
        found = tuned(work, name, goal)
        everything = tuned(work, f"{name}-all", f"{goal} --all")
        assert found["pick"]["knobs"] == everything["pick"]["knobs"]
        assert 3 * runs(found) <= runs(everything)
