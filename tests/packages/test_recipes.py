# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes for Yocto and Buildroot: what can be checked without either.

Nothing is built: neither has run here.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import kconfiglib
import pytest
from steady_lab.paths import PROJECT

YOCTO = PROJECT / "packaging" / "yocto"
BUILDROOT = PROJECT / "packaging" / "buildroot"
VERSION = tomllib.loads((PROJECT / "device" / "Cargo.toml").read_text())["workspace"]["package"][
    "version"
]
# The project has no home page.
SUPPRESSED = ("oelint.var.mandatoryvar.HOMEPAGE",)
# What Buildroot has of the names that the packages depend on.
BUILDROOT_KCONFIG = """
config BR2_LINUX_KERNEL
	bool "linux"
config BR2_PACKAGE_HOST_RUSTC
	bool
config BR2_PACKAGE_HOST_RUSTC_TARGET_ARCH_SUPPORTS
	bool "rust"
source "$BR2_EXTERNAL_STEADYIO_PATH/Config.in"
"""
# Each infrastructure prints what it was called for.
BUILDROOT_MAKE = """
pkgname = $(basename $(notdir $(lastword $(MAKEFILE_LIST))))
generic-package = $(info generic-package $(pkgname))
kernel-module = $(info kernel-module $(pkgname))
include $(BR2_EXTERNAL_STEADYIO_PATH)/external.mk
all: ; @echo $(K2_MODULE_SUBDIRS) $(K2_VERSION) $(STEADYIO_VERSION)
"""


def test_recipes_for_yocto_have_no_error() -> None:
    recipes = sorted(str(path) for path in YOCTO.rglob("*.bb"))
    assert len(recipes) == 3
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("oelint-adv"), "--quiet", "--release", "scarthgap"),
            *("--hide", "info", "--hide", "warning"),
            *(word for rule in SUPPRESSED for word in ("--suppress", rule)),
            *(*recipes, str(YOCTO / "conf" / "layer.conf")),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_recipes_for_yocto_name_the_licences_that_are_there() -> None:
    named = [
        found
        for path in [*YOCTO.rglob("*.bb"), *YOCTO.rglob("*.inc")]
        for found in re.findall(r"file://(\S+);md5=(\w+)", path.read_text(encoding="utf-8"))
    ]
    assert len(named) == 3
    for name, digest in named:
        assert hashlib.md5((PROJECT / name).read_bytes()).hexdigest() == digest


def test_crates_for_yocto_are_those_of_the_lock_file(tmp_path: Path) -> None:
    written = tmp_path / "crates.inc"
    subprocess.run([PROJECT / "scripts" / "yocto-crates", written], check=True)
    (committed,) = YOCTO.rglob("steadyio-crates.inc")
    assert written.read_text() == committed.read_text()
    lock = tomllib.loads((PROJECT / "device" / "Cargo.lock").read_text())
    fetched = {crate["checksum"] for crate in lock["package"] if "source" in crate}
    assert set(re.findall(r"\"(\w{64})\"", written.read_text())) == fetched


def test_buildroot_packages_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BR2_EXTERNAL_STEADYIO_PATH", str(BUILDROOT))
    top = tmp_path / "Config.in"
    top.write_text(BUILDROOT_KCONFIG)
    config = kconfiglib.Kconfig(str(top), warn_to_stderr=False)
    config.warn_assign_undef = True
    assert config.warnings == []
    for name in ("LINUX_KERNEL", "PACKAGE_HOST_RUSTC_TARGET_ARCH_SUPPORTS"):
        config.syms[f"BR2_{name}"].set_value("y")
    for name in ("K2", "K2_CHARIO", "STEADYIO"):
        assert config.syms[f"BR2_PACKAGE_{name}"].set_value("y")
        assert config.syms[f"BR2_PACKAGE_{name}"].str_value == "y"


def test_buildroot_packages_are_of_this_version(tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text(BUILDROOT_MAKE)
    done = subprocess.run(
        [
            *("make", "--no-print-directory", "--warn-undefined-variables", "-f", str(makefile)),
            *(f"BR2_EXTERNAL_STEADYIO_PATH={BUILDROOT}", "BR2_PACKAGE_K2_CHARIO=y"),
        ],
        # That `make test` called this says nothing of Buildroot.
        env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "kernel-module k2",
        "generic-package k2",
        "generic-package steadyio",
        f"kernel/k2 kernel/chario {VERSION} {VERSION}",
    ]
