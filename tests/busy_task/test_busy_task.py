# SPDX-License-Identifier: MIT OR Apache-2.0
"""A card's requests next to a real-time task that computes: `steady with --kworkers-fifo`."""

from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

HERE = PROJECT / "tests" / "busy_task"
# One command of a background caller on test-plain, and the reader's own, in us.
BACKGROUND_US, OWN_US = 100 + 64 * 4, 100 + 4 * 4
RT_BLOCK_US = 440  # k2's default
# The task computes for this long at a time.
BUSY_US = 5000
SCHEDULERS = ("none", "k2")
# With a command queue mmcblk ends requests in the interrupt; on 6.1 k2's go through kblockd.
NOT_DELAYED = {("6.1", "queue", "none"), ("6.12", "queue", "none"), ("6.12", "queue", "k2")}


@pytest.mark.parametrize("card", ["plain", "queue"])
@pytest.mark.parametrize("release", RELEASES)
def test_with_raised_workers_reads_take_as_long_as_without_the_task(
    release: str, card: str, work: Path
) -> None:
    compile_inside([HERE / "reader.c"], work / "reader", ["-O2", "-Wall", "-Werror"])
    device = PROJECT / "experiments" / "devices" / f"test-{card}.toml"
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady"}
    command = ["sh", f"{GUEST_PROJECT}/tests/busy_task/busy_task.sh"]
    result = uml(release).boot(BootRequest(command, work, device=device, environment=environment))
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    assert "not restored" not in result.output
    longest_us = {}
    for line in result.output.splitlines():
        match line.split():
            case [scheduler, case, _, longest, "10"]:
                longest_us[scheduler, case] = int(longest)
            case ["left", left]:
                assert left == "0", "workers stayed under SCHED_FIFO"
    for scheduler in SCHEDULERS:
        alone, task, raised = (longest_us[scheduler, x] for x in ("alone", "task", "raised"))
        assert raised <= 1.1 * alone, "as without the task"
        is_delayed = (release, card, scheduler) not in NOT_DELAYED
        assert (task > BUSY_US / 2) == is_delayed
    assert longest_us["k2", "background-raised"] <= RT_BLOCK_US + OWN_US, "k2's bound"


@pytest.mark.parametrize("release", RELEASES)
def test_a_character_device_needs_no_worker_and_a_starved_caller_holds_nothing_up(
    release: str, work: Path
) -> None:
    compile_inside([HERE / "reader.c"], work / "reader", ["-O2", "-Wall", "-Werror"])
    device = PROJECT / "experiments" / "devices" / "test-plain.toml"
    command = ["sh", f"{GUEST_PROJECT}/tests/busy_task/chardisk.sh"]
    environment = {"STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel"}
    request = BootRequest(command, work, device=device, environment=environment, modules=["chario"])
    result = uml(release).boot(request)
    print(result.output)
    assert result.exit_status == 0, result.output[-3000:]
    fields = [line.split() for line in result.output.splitlines()]
    longest_us = {(beside, case): int(longest) for beside, case, _, longest, _ in fields}
    for way in ("alone", "lane"):
        assert longest_us[way, "task"] <= 1.1 * longest_us[way, "quiet"]
    for case in ("quiet", "task"):
        assert longest_us["background", case] <= 1.1 * (BACKGROUND_US + OWN_US)
