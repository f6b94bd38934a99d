# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modules that dkms gets in its variables, before and after a build."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
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


def autoinstall(folder: Path, checked: int, read_for: str) -> str:
    """AUTOINSTALL as DKMS 3.0 reads it, which hides the kernel that the modules are wanted for.

    `checked`: the status of the check of that kernel.
    """
    (folder / "lib" / "6.12.2" / "build").mkdir(parents=True)
    (folder / "lib" / "6.12.2" / "build" / ".config").touch()
    check = folder / "python3"
    check.write_text(f'#!/bin/sh\n[ "$3" = 6.12.2 ] || exit 2\nexit {checked}\n')
    check.chmod(0o755)
    script = f'read_conf() {{ local kernelver=$1; . {CONF}; }}\nread_conf "$0"\necho $AUTOINSTALL'
    variables = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "action": "autoinstall",
        "kernelver": "6.12.2",
        "install_tree": str(folder / "lib"),
    }
    done = subprocess.run(
        ["bash", "-c", script, read_for],
        capture_output=True, text=True, check=True, env=variables,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize("read_for", ["", "6.12.1"])
def test_a_refused_kernel_is_not_autoinstalled_for(work: Path, read_for: str) -> None:
    assert autoinstall(work, 1, read_for) == ""


@pytest.mark.parametrize("read_for", ["", "6.12.1"])
def test_another_kernel_is_autoinstalled_for(work: Path, read_for: str) -> None:
    assert autoinstall(work, 0, read_for) == "yes"
