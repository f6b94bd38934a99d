# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which kernel tests run where: no difference between the kernels is left to `make test-all`."""

import kernel_scripts
import pytest
from kernel_groups import SHARED_MAX, can_share, group_of
from kernel_scripts import SCRIPTS, cases, flavour, header
from steady_lab.paths import PROJECT

COMPAT = PROJECT / "kernel" / "compat"
# A header with one of these has a difference of 6.17 or newer, which `make test` does not run.
ONLY_NEWER = ("LINUX_6_17", "COMPAT_HAS_")


def covered() -> set[str]:
    """What scripts cover that `make test` runs on each release."""
    headers = [header(path) for path in SCRIPTS.glob("*.sh")]
    anywhere = [keys for keys in headers if keys.get("FLAVOUR") != "debug"]
    return {name for keys in anywhere for name in keys.get("COMPAT", "").split()}


def test_each_difference_between_the_releases_of_make_test_is_covered() -> None:
    texts = {path.name: path.read_text() for path in COMPAT.glob("*.h")}
    wanted = {name for name, text in texts.items() if not any(mark in text for mark in ONLY_NEWER)}
    assert wanted - covered() == set(), "name them in a script of tests/kernel: # COMPAT: FILE"
    assert covered() - {path.name for path in COMPAT.glob("*.h")} == set(), "no such files"


def test_a_boot_is_shared_by_few_scripts_of_one_kernel() -> None:
    groups: dict[str, list[str]] = {}
    for release, script in cases():
        groups.setdefault(group_of(release, script), []).append(script.stem)
        if not can_share(script):
            assert group_of(release, script).endswith(f"-{script.stem}")
    assert max(len(scripts) for scripts in groups.values()) == SHARED_MAX
    assert len(groups) < len(cases()) / 3


def test_make_test_needs_one_kernel_of_each_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_scripts, "KERNEL_TEST_RELEASES", ("6.1", "6.12"))
    monkeypatch.setattr(kernel_scripts, "WHOLE_RELEASES", ("6.12",))
    wanted = cases.__wrapped__()
    kernels = {(release, flavour(script, release)) for release, script in wanted}
    assert kernels == {("6.1", "base"), ("6.12", "debug")}
    need_base = {path for path in SCRIPTS.glob("*.sh") if header(path).get("FLAVOUR") == "base"}
    assert need_base - {script for _, script in wanted} == set()
