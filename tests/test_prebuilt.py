# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiled kernels and `steady` go from one clone to others, which take what they would build."""

import re
import tarfile
from pathlib import Path

import pytest
from steady_lab.devices.kinds import MODULES
from steady_lab.errors import LabError
from steady_lab.kernels import build as kernel_build
from steady_lab.kernels import modules as kernel_modules
from steady_lab.kernels.build import LabKernel, build_kernel, kernel_folder
from steady_lab.kernels.modules import K2, build_module
from steady_lab.kernels.prebuilt import pack, unpack_matching
from steady_lab.kernels.source import find_source, packaged_source
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT, cache_dir
from steady_lab.root.cargo import SOURCE_SUFFIXES, build_steady, build_steady_guest, programs_part

pytestmark = pytest.mark.reads("lab", "kernel", "device")
packs = pytest.mark.nightly("an archive of compiled kernels that lacks something")


@pytest.fixture(scope="module")
def packed(base_kernel: LabKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prebuilt") / "prebuilt.tar.xz"
    pack(file, [("6.1", "base")], MODULES, with_steady=False)
    return file


@pytest.fixture
def other_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another machine, which has Debian's packages, but no builds."""
    other = tmp_path / "cache"
    other.mkdir()
    for name in ("roots", "src"):
        (other / name).symlink_to(cache_dir() / name)
    monkeypatch.setenv("STEADYIO_CACHE", str(other))
    return other


@packs
def test_an_empty_cache_gets_what_the_clone_would_compile(
    packed: Path, other_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = build_steady_guest().read_bytes()
    taken, left_out = unpack_matching(packed, MODULES)
    kinds = ["steady", "host", "kernels", *("modules" for _ in MODULES)]
    assert [name.split("/")[0] for name in taken] == kinds and not left_out
    assert (other_cache / programs_part() / "steady-guest").read_bytes() == steady

    def compiles(*_: object) -> None:
        pytest.fail("the kernel or a module is compiled")

    monkeypatch.setattr(kernel_build, "_compile", compiles)
    monkeypatch.setattr(kernel_modules, "_make", compiles)
    monkeypatch.setattr(kernel_modules, "BUILD", other_cache)
    kernel = build_kernel(find_source(), "base")
    assert kernel.tree.is_relative_to(other_cache)
    assert build_module(kernel, K2).is_file()
    before = kernel.linux.stat().st_mtime_ns
    unpack_matching(packed, MODULES)
    assert kernel.linux.stat().st_mtime_ns == before


@packs
def test_an_interrupted_build_is_replaced(packed: Path, other_cache: Path) -> None:
    tree = kernel_folder(packaged_source("6.1"), "base")
    tree.mkdir(parents=True)
    (tree / "begun.o").touch()
    unpack_matching(packed, MODULES)
    assert not (tree / "begun.o").exists()
    assert build_kernel(find_source(), "base").tree == tree


def test_what_other_sources_made_is_left_out(tmp_path: Path, other_cache: Path) -> None:
    file = archive(tmp_path, "steady/0123456789abcdef/steady")
    with pytest.raises(LabError, match="made of other sources; it has steady/0123456789abcdef"):
        unpack_matching(file, MODULES)
    assert not (other_cache / "steady").exists()
    part = programs_part()
    file = archive(tmp_path, f"{part}/steady", "kernels/6.1-base-0123456789abcdef/linux")
    assert unpack_matching(file, MODULES) == ([part], ["kernels/6.1-base-0123456789abcdef"])
    assert not (other_cache / "kernels").exists()


@pytest.mark.parametrize("name", ["/etc/passwd", "steady/../../evil", "steady"])
def test_a_file_with_other_names_is_refused(tmp_path: Path, other_cache: Path, name: str) -> None:
    with pytest.raises(LabError, match=f"{re.escape(name)}: not what steady-lab prebuilt packs"):
        unpack_matching(archive(tmp_path, name), MODULES)


@packs
def test_a_file_that_is_cut_off_leaves_no_kernel(
    packed: Path, tmp_path: Path, other_cache: Path
) -> None:
    content = packed.read_bytes()
    cut = tmp_path / "cut.tar.xz"
    cut.write_bytes(content[: len(content) * 3 // 4])
    with pytest.raises(LabError, match="cut.tar.xz: damaged"):
        unpack_matching(cut, MODULES)
    tree = kernel_folder(packaged_source("6.1"), "base")
    assert (tree / "make-is-running").exists() and not (tree / "steady-built.json").exists()
    cut.write_bytes(b"no archive")
    with pytest.raises(LabError, match="cut.tar.xz: damaged"):
        unpack_matching(cut, MODULES)


def test_the_key_of_steady_covers_all_that_cargo_compiles_it_from() -> None:
    build_steady()
    told = BUILD / "steady" / "release" / "steady.d"
    if not told.is_file():
        pytest.skip("steady came prebuilt: cargo has not told what it compiles it from")
    sources = told.read_text("utf-8").split(": ", 1)[1].split()
    below = f"{GUEST_PROJECT}/device/"
    assert len(sources) > 200
    assert [
        source
        for source in sources
        if not source.startswith(below) or Path(source).suffix not in SOURCE_SUFFIXES
    ] == []
    assert (PROJECT / "device" / "Cargo.lock").is_file()


def archive(folder: Path, *names: str) -> Path:
    """A file with an empty member of each name."""
    file = folder / "made.tar.xz"
    with tarfile.open(file, "w:xz") as made:
        for name in names:
            made.addfile(tarfile.TarInfo(name))
    return file
