# SPDX-License-Identifier: MIT OR Apache-2.0
"""A million checked transfers and many fuzzed ioctls on character devices; called by scripts/soak.

STEADY_CHARIO_TRANSFERS [1000000] of each release, STEADY_CHARIO_CALLS [200000], STEADY_CHARIO_SEED.
"""

import os
from pathlib import Path

import kernel_scripts
import pytest
from releases import RELEASES

# chario_random_transfers.sh runs this many times.
RUNS = 7


def run(script: str, release: str, work: Path, **environment: str) -> None:
    seed = os.environ.get("STEADY_CHARIO_SEED", "1")
    path = kernel_scripts.SCRIPTS / f"{script}.sh"
    result = kernel_scripts.run(path, release, work, {"CHARIO_SEED": seed, **environment}, 7200)
    print(result.output)
    assert result.exit_status == 0, f"seed {seed}: {result.output[-3000:]}"


@pytest.mark.parametrize("release", RELEASES)
def test_transfers_keep_their_data(release: str, work: Path) -> None:
    transfers = int(os.environ.get("STEADY_CHARIO_TRANSFERS", "1000000"))
    run("chario_random_transfers", release, work, CHARIO_TRANSFERS=str(-(-transfers // RUNS)))


@pytest.mark.parametrize("release", RELEASES)
def test_no_ioctl_reaches_what_was_not_declared(release: str, work: Path) -> None:
    calls = os.environ.get("STEADY_CHARIO_CALLS", "200000")
    run("chario_fuzzed_ioctls", release, work, CHARIO_CALLS=calls)


@pytest.mark.parametrize("release", RELEASES)
def test_a_lane_obeys_its_partition(release: str, work: Path) -> None:
    run("chario_lane_changes", release, work, CHARIO_ROUNDS="100")
