# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every failures/*.sh: `steady record` on devices and file systems that fail under it.

The headers are those of the kernel tests (test_kernel.py).
"""

from pathlib import Path

import pytest
import test_kernel
from steady_lab.paths import GUEST_PROJECT

FAILURES = Path(__file__).parent / "failures"
SCRIPTS = sorted(set(FAILURES.glob("*.sh")) - {FAILURES / "recorder.sh"})
CASES = [
    pytest.param(release, script, id=f"{script.stem}-{release}")
    for script in SCRIPTS
    for release in ("6.1", "6.12")
    if test_kernel.is_for(script, release)
]


@pytest.mark.parametrize(("release", "script"), CASES)
def test_failure(release: str, script: Path, work: Path) -> None:
    more = {
        "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
        "STEADY_FAILURES": f"{GUEST_PROJECT}/tests/recorder/failures",
    }
    result = test_kernel.run(script, release, work, more)
    print(result.output)
    description = test_kernel.header(script)["DESCRIPTION"]
    assert result.exit_status == 0, f"{description}\n{result.output[-3000:]}"
