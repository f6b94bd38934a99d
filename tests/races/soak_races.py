# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same loads for longer, each time with the next seed; called by scripts/soak.

STEADY_RACES_MINUTES [10] for each kernel and each of k2 and chario; the first seed is
STEADY_RACES_SEED [1].
"""

import itertools
import os
import time
from pathlib import Path

import pytest
from race_kernels import FAST, HERE, each_kernel, run

LOADS = {
    "k2": (HERE / "k2_under_load.sh", FAST, ()),
    "chario": (HERE / "chario_under_load.sh", ("sd",), ("chario",)),
}


@each_kernel
@pytest.mark.parametrize("load", LOADS)
def test_no_seed_finds_a_race(load: str, kernel: str, work: Path) -> None:
    script, disks, modules = LOADS[load]
    end_s = time.monotonic() + 60 * float(os.environ.get("STEADY_RACES_MINUTES", "10"))
    for seed in itertools.count(int(os.environ.get("STEADY_RACES_SEED", "1"))):
        result = run(kernel, script, work, disks, modules, STEADY_SEED=str(seed))
        assert result.exit_status == 0, f"STEADY_RACES_SEED={seed}: {result.output[-3000:]}"
        if time.monotonic() > end_s:
            return
