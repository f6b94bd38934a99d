# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guides/deadlines.md, from top to bottom, on emulated cards."""

import re
from pathlib import Path

import pytest
from kernel_scripts import build_helpers, helpers_folder
from releases import guest_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.toml_table import load_toml

DEVICES = PROJECT / "experiments" / "devices"
EXAMPLES = PROJECT / "docs" / "examples"
GUIDE = PROJECT / "docs" / "guides" / "deadlines.md"
# With 6.1, `steady bound` rejects the examples' background on a card with a cache.
RELEASE = "6.12"
# With each card the example that fits it, and what doctor finds in the end.
RUNS = [
    ("foresee-ncemad9d-usb", "robot", ""),
    # A command queue.
    ("foresee-ncemad9d-cqe", "robot", ""),
    # Pauses of 200 ms.
    ("test-slow-sd", "logger", ""),
    # A cache, which the file system flushes.
    ("test-cache-fua", "logger", "cache-flush"),
]
JOBS, SECONDS = 30, 5


@pytest.mark.parametrize(("card", "tasks", "kept"), RUNS)
def test_the_commands_of_the_guide_set_a_card_up_for_deadlines_that_hold(
    card: str, tasks: str, kept: str, work: Path
) -> None:
    build_helpers()
    commands = re.findall(r"^```sh\n(.*?)\n```$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 7
    (work / "commands").write_text("\n".join(commands) + "\n", encoding="utf-8")
    (work / "card.img").touch()
    first = load_toml(EXAMPLES / f"{tasks}.toml")["task"][0]
    name, period_us = first["name"], first["period_us"]
    seconds = max(SECONDS, JOBS * period_us // 1_000_000)
    request = BootRequest(
        ["sh", f"{GUEST_PROJECT}/tests/bound/deadlines.sh"],
        work,
        DEVICES / f"{card}.toml",
        environment={
            "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/{helpers_folder().relative_to(PROJECT)}",
            "TASKS": tasks,
            "FIRST": name,
            "PERIOD_US": str(period_us),
            "LENGTH_S": str(seconds),
            "KEPT": kept,
        },
        card_image="card.img",
    )
    result = guest_kernel(RELEASE).boot(request)
    assert result.exit_status == 0, result.output
    longest_ns, bound_ns = map(
        int, re.findall(rf"^{name}: (\d+) ns of (\d+)$", result.output, re.MULTILINE)[0]
    )
    assert bound_ns / 5 < longest_ns <= bound_ns
    assert re.search(rf"^{name} +0 +{bound_ns / 1e6:.3f} ", result.output, re.MULTILINE)
    # Only the slow card's stalls are most of a bound.
    assert ("settings: no knob helps" in result.output) == (card == "test-slow-sd")
    watched = re.findall(r"^\S+Z mmcblk0 +(.*)$", result.output, re.MULTILINE)
    assert len(watched) >= seconds - 1, result.output
    assert all("late 0 " in f"{line} " for line in watched), watched
    seen = sum(int(count) for line in watched for count in re.findall(r"\brt0 (\d+) ", line))
    assert seen > seconds * 1_000_000 / period_us / 2, watched
