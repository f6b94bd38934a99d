# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which modules dkms is told of, in its variables, before and after a build."""

from __future__ import annotations

import subprocess
from pathlib import Path

from steady_lab.paths import PROJECT

CONF = PROJECT / "packaging" / "debian" / "k2-dkms.dkms"
SHOW = 'printf "%s\\n" "${BUILT_MODULE_NAME[*]}" "${BUILD_EXCLUSIVE_KERNEL:-any}"'


def modules(folder: Path, action: str, force: str = "") -> list[str]:
    """Names of the modules, and which kernels may have them; dkms' tree and headers in `folder`."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "action": action,
        "force": force,
        "kernelver": "6.12.1",
        "dkms_tree": str(folder / "tree"),
        "kernel_source_dir": str(folder / "headers"),
    }
    done = subprocess.run(
        ["bash", "-c", f". {CONF}; {SHOW}"],
        capture_output=True, text=True, check=True, env=variables,
    )  # fmt: skip
    return done.stdout.splitlines()


def built(folder: Path, *names: str) -> None:
    place = folder / "tree" / "k2" / "#MODULE_VERSION#" / "6.12.1" / "x86_64" / "module"
    place.mkdir(parents=True)
    for name in names:
        (place / name).touch()


def headers(folder: Path) -> None:
    """Of no kernel, and of which the check says no."""
    (folder / "headers").mkdir()
    (folder / "headers" / ".config").write_text("CONFIG_MMC=m\n")


def test_what_was_built_is_removed_when_the_headers_are_gone(work: Path) -> None:
    built(work, "k2.ko.xz", "chario.ko.xz")
    assert modules(work, "remove") == ["k2 chario", "any"]


def test_what_was_built_is_installed_without_another_check(work: Path) -> None:
    built(work, "k2.ko")
    headers(work)
    assert modules(work, "install") == ["k2", "any"]


def test_a_build_is_checked(work: Path) -> None:
    headers(work)
    for action in ("build", "install", "autoinstall", "kernel_postinst"):
        assert modules(work, action) == ["k2", "^$"]


def test_a_build_that_is_forced_is_checked_again(work: Path) -> None:
    built(work, "k2.ko")
    headers(work)
    assert modules(work, "build", force="true") == ["k2", "^$"]


def test_a_status_checks_nothing(work: Path) -> None:
    headers(work)
    assert modules(work, "status") == ["k2", "any"]
