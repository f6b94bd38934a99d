# SPDX-License-Identifier: MIT OR Apache-2.0
"""A load takes as many commands of the card as its length says, and no longer than these take."""

import math
from pathlib import Path

import pytest
from kernel_scripts import build_helpers
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

# Times of this card: base_ns per command, per_kib_ns for its data. Where computing takes no time,
# a system call and reading the clock do: 1.7 to 2.3 us were seen per command.
DEVICE = PROJECT / "experiments" / "devices" / "test-cut.toml"
BASE_NS, CALL_NS, PER_KIB_NS = 50_000, 2_500, 4_000
SIZES = [1, 4096, 65_536, 524_288, 524_289, 1_000_000, 4 << 20, (16 << 20) - 1]


@pytest.mark.parametrize("release", RELEASES)
def test_a_load_takes_the_commands_and_the_time_that_its_length_says(
    release: str, work: Path
) -> None:
    build_helpers()
    result = uml(release, "base").boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/store/load_bound.sh"],
            work=work,
            device=DEVICE,
            environment={
                "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
                "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
                "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
                "STORE_SIZES": " ".join(map(str, SIZES)),
            },
            timeout_s=600,
        )
    )
    print(result.output)
    assert result.exit_status == 0
    rows = [line.split() for line in result.output.splitlines()]
    kib, segments = next((int(row[1]), int(row[3])) for row in rows if row[0] == "sectors")
    command_bytes = min(kib * 1024, segments * 4096, 1 << 20)
    loads = [tuple(map(int, row[1:])) for row in rows if row[0] == "load"]
    assert [load[0] for load in loads] == SIZES
    for length, told, device_ns, seen in loads:
        blocks = math.ceil(length / 4096) * 4096
        commands = math.ceil(blocks / command_bytes)
        assert (told, seen) == (commands, commands), length
        bound_ns = commands * (BASE_NS + CALL_NS) + blocks // 1024 * PER_KIB_NS
        assert device_ns <= bound_ns, length
