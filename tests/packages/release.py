# SPDX-License-Identifier: MIT OR Apache-2.0
"""What scripts/release adds to the packages: sources with their crates, SBOMs, the lab's wheel.

Called by `make test-packages`, since they take minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from steady_lab.devices.kinds import MODULES
from steady_lab.kernels.prebuilt import pack
from steady_lab.paths import PROJECT
from steady_lab.root.root import guest_root
from test_wheels import installed_lab

PACKAGES = PROJECT / "build" / "packages-arm64"


def make(script: str, clone: Path, folder: Path) -> dict[str, bytes]:
    """What the script of the clone wrote into the folder: bytes by name."""
    folder.mkdir(parents=True)
    subprocess.run([clone / "scripts" / script, folder], check=True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def other_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = tmp_path_factory.mktemp("other") / "deeper" / "clone"
    subprocess.run(["git", "clone", "--quiet", PROJECT, clone], check=True)
    (clone / "build" / "bin").mkdir(parents=True)
    tool = "build/bin/cargo-cyclonedx"
    (clone / tool).symlink_to((PROJECT / tool).resolve())
    return clone


@pytest.mark.parametrize("script", ["source-archive", "sbom"])
def test_two_clones_give_the_same_bytes(script: str, other_clone: Path, work: Path) -> None:
    here = make(script, PROJECT, work / "here")
    assert here
    assert make(script, other_clone, work / "there") == here


def test_the_source_archive_builds_without_a_network(work: Path) -> None:
    (name,) = make("source-archive", PROJECT, work / "made")
    subprocess.run(["tar", "-xJf", work / "made" / name, "-C", work], check=True)
    device = work / name.removesuffix(".tar.xz") / "device"
    # A network of its own has no interface that is up; without a home cargo has downloaded nothing.
    environment = os.environ | {"CARGO_HOME": str(work / "home")}
    command = ["unshare", "--net", "--map-root-user"]
    command += ["cargo", "build", "--offline", "--locked", "--package", "steady"]
    command += ["--target-dir", str(work / "target")]
    subprocess.run(command, cwd=device, env=environment, check=True)
    steady = work / "target" / "debug" / "steady"
    assert (
        b"steady" in subprocess.run([steady, "--version"], capture_output=True, check=True).stdout
    )


def test_an_sbom_names_each_crate_that_is_linked(work: Path) -> None:
    made = make("sbom", PROJECT, work / "made")
    (bom,) = (json.loads(text) for name, text in made.items() if name.startswith("steady-0"))
    named = {f"{part['name']} v{part['version']}" for part in bom["components"]}
    command = ["cargo", "tree", "--locked", "--package", "steady", "--edges", "normal"]
    command += ["--prefix", "none", "--format", "{p}"]
    listed = subprocess.run(
        command, cwd=PROJECT / "device", capture_output=True, text=True, check=True
    )
    linked = {" ".join(line.split()[:2]) for line in listed.stdout.splitlines() if line}
    linked = {name for name in linked if not name.startswith("steady v")}
    assert len(linked) > 50
    assert linked - named == set()


def machine_without_compiler(folder: Path) -> dict[str, str]:
    """An environment with bubblewrap alone; of the cache there is only what guests run on."""
    cache, programs = folder / "cache", folder / "programs"
    (cache / "roots").mkdir(parents=True)
    root = guest_root().path
    (cache / "roots" / root.name).symlink_to(root)
    programs.mkdir()
    for name in ("bwrap", "true"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(programs), "HOME": str(folder), "STEADYIO_CACHE": str(cache)}


def test_the_wheel_with_compiled_parts_needs_no_compiler(work: Path) -> None:
    prebuilt = work / "prebuilt.tar.xz"
    pack(prebuilt, [("6.1", "base")], MODULES, with_steady=False)
    lab, machine = installed_lab(work, "--prebuilt", prebuilt), machine_without_compiler(work)
    figure = ["run", "every-10-ms", "--only", "k2-440us", "--jobs", "1"]
    done = subprocess.run(
        [lab, *figure], cwd=work, env=machine, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (tree,) = (work / "cache" / "tree").iterdir()
    (record,) = (tree / "build" / "work").glob("*/k2-440us/record.json")
    assert record.is_file()
    cache = {path.name for path in (work / "cache").iterdir()}
    assert cache == {"tree", "roots", "kernels", "modules", "host", "steady"}
    assert len(list((work / "cache" / "roots").iterdir())) == 1

    (archive,) = work.glob("environment/lib/python*/site-packages/steady_lab/prebuilt.tar.xz")
    shutil.rmtree(work / "cache" / "kernels")
    archive.write_bytes(archive.read_bytes() + b"more")
    done = subprocess.run(
        [lab, *figure, "--fresh"], cwd=work, env=machine, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1 and not (work / "cache" / "src").exists()
    assert "prebuilt.tar.xz: not what pip installed (run `pip install" in done.stderr


ELF_MACHINE = slice(18, 20)
AARCH64 = (183).to_bytes(2, "little")


def test_packages_for_arm64_have_its_programs_and_dependencies(work: Path) -> None:
    subprocess.run([PROJECT / "scripts" / "packages", "--for", "arm64"], check=True)
    found = {path.name.split("_")[0]: path for path in PACKAGES.glob("*.deb")}
    assert sorted(found) == ["libsteadyio-dev", "libsteadyio0", "steadyio"]
    for name, file in (("steadyio", "usr/bin/steady"), ("libsteadyio0", "usr/lib/*/*.so.0.*")):
        subprocess.run(["dpkg-deb", "--extract", found[name], work / name], check=True)
        (program,) = (work / name).glob(file)
        assert program.read_bytes()[ELF_MACHINE] == AARCH64
        command = ["dpkg-deb", "--field", str(found[name]), "Depends"]
        depends = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "libc6 (>=" in depends and "cross" not in depends


def test_the_wheel_for_arm64_is_for_every_python(work: Path) -> None:
    command = ["build/bin/steady-lab", "root", "wheel", "--for", "arm64"]
    subprocess.run([*command, str(work)], cwd=PROJECT, check=True)
    (wheel,) = work.glob("*.whl")
    assert wheel.name.endswith("_aarch64.whl") and "-abi3-manylinux_" in wheel.name
