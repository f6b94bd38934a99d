# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every tests/kernel/*.sh on each release: several in one guest, alone if it fails there.

The script's header lists its needs (kernel_scripts.py).
"""

from pathlib import Path

import pytest
from kernel_groups import SharedBoots
from kernel_scripts import STATUS_SKIP, cases, header, run
from steady_lab.targets.in_turn import VoidedError
from steady_lab.targets.target import BootError, BootResult

CASES = [pytest.param(*case, id=f"{case[0]}-{case[1].stem}") for case in cases()]


@pytest.fixture(scope="session")
def shared_boots() -> SharedBoots:
    return SharedBoots()


@pytest.mark.parametrize(("release", "script"), CASES)
def test_kernel(
    release: str,
    script: Path,
    work: Path,
    request: pytest.FixtureRequest,
    shared_boots: SharedBoots,
) -> None:
    print(f"replay: scripts/test -k {release}-{script.stem}")
    assert isinstance(request.node, pytest.Function)
    shared = shared_boots.result(request.node, release, script)
    if isinstance(shared, BootResult) and shared.exit_status in (0, STATUS_SKIP):
        expect_passed(script, shared)
        return
    if shared is not None:
        print(f"in a boot with other scripts: {described(shared)}\nalone:")
    expect_passed(script, run(script, release, work))
    may_pass = shared is None or isinstance(shared, VoidedError)
    assert may_pass, "passed alone, and failed after other scripts"


def expect_passed(script: Path, result: BootResult) -> None:
    print(result.output)
    if result.exit_status == STATUS_SKIP:
        pytest.skip(result.output.strip().splitlines()[-1])
    assert result.exit_status == 0, f"{header(script)['DESCRIPTION']}\n{result.output[-3000:]}"


def described(result: BootResult | BootError) -> str:
    if isinstance(result, BootError):
        return str(result)
    return f"exit status {result.exit_status}\n{result.output[-3000:]}"
