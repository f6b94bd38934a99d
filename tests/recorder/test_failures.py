# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every failures/*.sh: `steady record` on devices and file systems that fail under it.

The headers are those of the kernel tests (kernel_scripts.py).
"""

from pathlib import Path

import kernel_scripts
import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT

FAILURES = Path(__file__).parent / "failures"
SCRIPTS = sorted(set(FAILURES.glob("*.sh")) - {FAILURES / "recorder.sh"})
CASES = [
    pytest.param(release, script, id=f"{script.stem}-{release}")
    for script in SCRIPTS
    # A failure that no release of RELEASES has is tried on the one that has it.
    for release in [one for one in RELEASES if kernel_scripts.is_for(script, one)] or ["6.1"]
]


@pytest.mark.parametrize(("release", "script"), CASES)
def test_failure(release: str, script: Path, work: Path) -> None:
    more = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_RECIPE": f"{GUEST_PROJECT}/build/bin/steady-recipe",
        "STEADY_FAILURES": f"{GUEST_PROJECT}/tests/recorder/failures",
    }
    result = kernel_scripts.run(script, release, work, more)
    print(result.output)
    description = kernel_scripts.header(script)["DESCRIPTION"]
    assert result.exit_status == 0, f"{description}\n{result.output[-3000:]}"
