# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot for several scripts of tests/kernel, each of which gets its own result of it."""

import shutil
from functools import cache
from pathlib import Path

import pytest
from boots import USED, Boots, boots_of
from kernel_scripts import build_helpers, cases, device_file, flavour, header, request_of
from steady_lab.devices.spec import load_device
from steady_lab.paths import BUILD
from steady_lab.targets.target import BootError, BootResult
from steady_lab.targets.uml import uml

SHARED_MAX = 10
Result = BootResult | BootError


@cache
def can_share(script: Path) -> bool:
    """Whether others may run before and after it in the same guest."""
    device = device_file(script)
    return "ALONE" not in header(script) and (not device or load_device(device).kind.unload)


def group_of(release: str, script: Path) -> str:
    """Name the boot that a script shares: up to SHARED_MAX scripts for the same kernel."""
    kernel = f"{release}-{flavour(script, release)}"
    if not can_share(script):
        return f"{kernel}-{script.stem}"
    alike = [
        path
        for known, path in cases()
        if known == release
        and flavour(path, release) == flavour(script, release)
        and can_share(path)
    ]
    return f"{kernel}-{alike.index(script) // SHARED_MAX}"


def scripts_in(group: str, test: pytest.Function) -> list[Path]:
    """Return the scripts of a group that the session of `test` runs."""
    scripts = []
    for item in test.session.items:
        if isinstance(item, pytest.Function) and item.originalname == test.originalname:
            release, script = item.callspec.params["release"], item.callspec.params["script"]
            assert isinstance(release, str) and isinstance(script, Path)
            scripts += [script] if group_of(release, script) == group else []
    return scripts


@cache
def _groups() -> dict[str, str]:
    return {f"[{release}-{script.stem}]": group_of(release, script) for release, script in cases()}


def group_of_test(nodeid: str) -> str | None:
    """Return the group of a test of test_kernel.py, None for any other test."""
    file, _, case = nodeid.partition("::test_kernel")
    return _groups().get(case) if file == "tests/test_kernel.py" else None


class SharedBoots:
    """The boots of one session; a group is those of its scripts that the session runs."""

    def __init__(self) -> None:
        self._results: dict[str, dict[Path, Result]] = {}
        self._boots: dict[str, Boots] = {}

    def result(self, test: pytest.Function, release: str, script: Path) -> Result | None:
        """Boot the group if no other test of it has; None if the script is all of it."""
        group = group_of(release, script)
        if group not in self._results:
            self._results[group] = self._boot(group, release, scripts_in(group, test))
        folder = self._boots[group].folder if group in self._boots else None
        if folder:
            test.stash[USED] = folder
        return self._results[group].get(script)

    def _boot(self, group: str, release: str, scripts: list[Path]) -> dict[Path, Result]:
        if len(scripts) == 1:
            return {}
        build_helpers()
        work = BUILD / "tests" / "work" / f"kernel-{group}"
        # What the last run left would be an input of this boot.
        shutil.rmtree(work, ignore_errors=True)
        requests = [request_of(script, release, work / script.stem) for script in scripts]
        names = " ".join(script.stem for script in scripts)
        with boots_of(f"kernel {group} {names}", pytest.MonkeyPatch()) as boots:
            results = uml(release, flavour(scripts[0], release)).boot_in_turn(requests)
            boots.passed = all(
                isinstance(result, BootResult) and result.exit_status == 0 for result in results
            )
        self._boots[group] = boots
        return dict(zip(scripts, results, strict=True))
