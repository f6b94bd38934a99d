# SPDX-License-Identifier: MIT OR Apache-2.0
"""The wheel of the lab, as pip installs it; that of the recorder is in tests/python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from linked_cache import cache_without
from steady_lab.kernels.build import LabKernel
from steady_lab.paths import PROJECT
from steady_lab.tree import unpacked
from verdicts import WITHOUT_STEADY

pytestmark = pytest.mark.reads(*WITHOUT_STEADY)
builds_a_wheel = pytest.mark.nightly("a wheel that lacks a file")


def installed_lab(folder: Path, *options: str | Path) -> Path:
    """The command, in an environment that has but the libraries of this one next to it."""
    subprocess.run([PROJECT / "scripts" / "wheels", *options, folder, "steady-lab"], check=True)
    (wheel,) = folder.glob("steady_lab-*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "--quiet"]
    offline = ["--disable-pip-version-check", "--no-index", str(wheel)]
    subprocess.run([*pip, "install", *offline], check=True)
    return environment / "bin" / "steady-lab"


@builds_a_wheel
def test_the_lab_boots_a_kernel_with_k2_from_its_wheel(work: Path, base_kernel: LabKernel) -> None:
    lab, cache = installed_lab(work), cache_without("tree", work)
    command = ["boot", "--device", "experiments/devices/test-plain.toml", "--"]
    command += ["sh", "-c", "cat /sys/block/mmcblk0/queue/scheduler"]
    done = subprocess.run(
        [lab, *command],
        cwd=work, env=os.environ | {"STEADYIO_CACHE": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "k2" in done.stdout.split(), done.stderr
    (tree,) = (cache / "tree").iterdir()
    assert (tree / "kernel" / "k2" / "k2_main.c").is_file()
    assert list((tree / "build" / "modules").iterdir())


def test_a_tree_is_unpacked_once_per_content(work: Path) -> None:
    places = []
    for number, content in enumerate(("one", "other", "one")):
        (work / "file").write_text(content)
        archive = work / f"{number}.tar.xz"
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(
                work / "file", "file", filter=lambda member: member.replace(mtime=0, deep=False)
            )
        places.append(unpacked(archive, work / "trees"))
    assert [(place / "file").read_text() for place in places] == ["one", "other", "one"]
    assert places[0] == places[2] != places[1]
    assert sorted((work / "trees").iterdir()) == sorted(places[:2])


@builds_a_wheel
def test_the_lab_is_packed_from_a_tarball_below_another_repository(work: Path) -> None:
    outer, project = work / "outer", work / "outer" / "steadyio"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", outer], check=True)
    with subprocess.Popen(
        ["git", "archive", "HEAD"], cwd=PROJECT, stdout=subprocess.PIPE
    ) as packed:
        subprocess.run(["tar", "-x", "-C", project], stdin=packed.stdout, check=True)
    for name in ("scripts/wheels", "lab/pyproject.toml", "lab/README.md"):
        shutil.copy(PROJECT / name, project / name)
    (project / "build").mkdir()
    (project / "build" / "venv").symlink_to(PROJECT / "build" / "venv")
    (project / "build" / "scratch").write_text("of an earlier build")
    subprocess.run([project / "scripts" / "wheels", work / "wheels", "steady-lab"], check=True)
    (wheel,) = (work / "wheels").glob("steady_lab-*.whl")
    with zipfile.ZipFile(wheel) as whole:
        archive = whole.extract("steady_lab/tree.tar.xz", work)
    with tarfile.open(archive) as tree:
        names = set(tree.getnames())
    assert "kernel/k2/k2_main.c" in names
    assert not [name for name in names if name.startswith("build")]
