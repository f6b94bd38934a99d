# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels come from a checked source, are built once, and a half-built one is never used."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from linked_cache import cache_without
from releases import MODULE_RELEASES
from steady_lab.errors import LabError
from steady_lab.kernels import build as kernel_build
from steady_lab.kernels import source as kernel_source
from steady_lab.kernels.architecture import BITS32
from steady_lab.kernels.build import (
    LabKernel,
    build_kernel,
    config_fragments,
    unmet_options,
    whole_files_only,
)
from steady_lab.kernels.modules import CHARIO, K2, Module, build_module
from steady_lab.kernels.source import KernelSource, find_source
from steady_lab.paths import GUEST_KERNEL, PROJECT
from steady_lab.root.root import build_root
from steady_lab.root.sandbox import Place, build_sandbox, read_info, start_inside

pytestmark = pytest.mark.reads("lab", "kernel")


def test_options_that_did_not_survive_are_named() -> None:
    wanted = {"CONFIG_A": "y", "CONFIG_B": "m", "CONFIG_C": "n", "CONFIG_D": "n"}
    config = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=y\n# CONFIG_D is not set\n"
    assert unmet_options(wanted, config) == ["CONFIG_B=m", "CONFIG_C=n"]


@pytest.fixture
def no_kernels(tmp_path: Path) -> Path:
    return cache_without("kernels", tmp_path)


def test_impossible_option_fails_before_compiling(
    tmp_path: Path, no_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = find_source()
    for fragment in config_fragments("debug", source.release):
        (tmp_path / fragment.name).write_bytes(fragment.read_bytes())
    (tmp_path / "base.config").write_text("CONFIG_NO_SUCH_OPTION=y\n")
    monkeypatch.setattr(kernel_build, "KERNEL_CONFIGS", tmp_path)
    monkeypatch.setenv("STEADYIO_CACHE", str(no_kernels))
    with pytest.raises(LabError, match="CONFIG_NO_SUCH_OPTION=y"):
        build_kernel(source, "base")


def test_finished_kernel_is_not_built_again(base_kernel: LabKernel) -> None:
    before = base_kernel.linux.stat().st_mtime_ns
    assert build_kernel(find_source(), "base") == base_kernel
    assert base_kernel.linux.stat().st_mtime_ns == before


def test_damaged_kernel_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"cut off")
    stamp = {"linux_sha256": "0" * 64, "config_sha256": "0" * 64}
    (tmp_path / "steady-built.json").write_text(json.dumps(stamp))
    source = KernelSource(tree=tmp_path, content_key="same", name="same", release="6.1")
    assert kernel_build._finished(tmp_path, source, "base", "key") is None


def test_release_adds_its_own_fragment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("base", "debug", "debug-6.12"):
        (tmp_path / f"{name}.config").write_text("")
    monkeypatch.setattr(kernel_build, "KERNEL_CONFIGS", tmp_path)
    names = [[path.stem for path in config_fragments("debug", r)] for r in ("6.1", "6.12")]
    assert names == [["base", "debug"], ["base", "debug", "debug-6.12"]]


def test_configuration_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = KernelSource(tree=tmp_path, content_key="same", name="same", release="6.1")
    (tmp_path / "base.config").write_text("CONFIG_A=y\n")
    monkeypatch.setattr(kernel_build, "KERNEL_CONFIGS", tmp_path)
    first = kernel_build.content_key(source, "base")
    (tmp_path / "base.config").write_text("CONFIG_A=n\n")
    assert kernel_build.content_key(source, "base") != first


def kernel_tree(folder: Path) -> Path:
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    return folder


def test_any_tree_can_be_named(tmp_path: Path) -> None:
    tree = kernel_tree(tmp_path / "tree")
    first = find_source(tree)
    assert (first.tree, first.release) == (tree, "6.12")
    (tree / "Kbuild").write_text("changed")
    assert find_source(tree).content_key != first.content_key


def test_tree_from_the_environment_serves_its_release_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = kernel_tree(tmp_path / "tree")
    monkeypatch.setenv("STEADYIO_KERNEL_SOURCE", str(tree))
    assert find_source(release="6.12").tree == tree
    assert find_source(release="6.1").tree != tree


def test_folder_without_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not a kernel tree"):
        find_source(tmp_path)


def test_tree_built_in_place_is_refused(tmp_path: Path) -> None:
    tree = kernel_tree(tmp_path / "tree")
    (tree / ".config").write_text("")
    with pytest.raises(LabError, match="mrproper"):
        find_source(tree)


def test_damaged_archive_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "package.deb"
    archive.write_bytes(b"not an archive")
    monkeypatch.setenv("STEADYIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_source, "fetch", lambda packages: [archive])
    with pytest.raises(LabError, match="unpacking .*package.deb failed"):
        find_source()
    assert list((tmp_path / "cache" / "src").iterdir()) == []


def test_k2_refuses_a_release_it_was_not_tested_on() -> None:
    folder = PROJECT / "kernel" / "k2"
    command = ["make", "-f", f"{folder}/Kbuild", f"src={folder}", "VERSION=6", "PATCHLEVEL=6"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "k2 supports Linux 6.1, 6.12, and 6.17 or newer, not 6.6" in refused.stderr


def compiled(cache: Path) -> dict[Path, int]:
    """Early objects of the build below `cache`, with their modification times."""
    return {path: path.stat().st_mtime_ns for path in cache.glob("kernels/*/arch/um/**/*.o")}


def interrupted_build(source: Path, cache: Path, until_objects: int) -> dict[Path, int]:
    """Start a build, press Ctrl-C once enough is compiled, and return the compiled objects."""
    output = cache / "output"
    with output.open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "steady_lab.cli", "kernel", "build", "--source", str(source)],
            env=os.environ | {"STEADYIO_CACHE": str(cache)},
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while len(compiled(cache)) < until_objects:
        assert process.poll() is None, f"the build ended by itself: {output.read_text()}"
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=600) == 130, output.read_text()
    return compiled(cache)


@pytest.mark.nightly("an interrupted build of a kernel that starts from scratch")
def test_interrupted_build_goes_on_where_it_was(no_kernels: Path) -> None:
    source = find_source().tree
    first = interrupted_build(source, no_kernels, until_objects=5)
    second = interrupted_build(source, no_kernels, until_objects=len(first) + 5)
    assert not list(no_kernels.glob("kernels/*/steady-built.json"))
    kept = [path for path, time_ns in first.items() if second.get(path) == time_ns]
    # make deletes the objects that it was just writing.
    assert len(kept) >= len(first) - 4


def test_ctrl_c_lets_a_command_in_the_root_end_its_work(tmp_path: Path) -> None:
    """Make deletes what it has half written. If bwrap died of the signal, it could not."""
    inside = build_sandbox(build_root().path, [Place(tmp_path, GUEST_KERNEL, writable=True)])
    script = f"trap 'sleep 0.5; touch {GUEST_KERNEL}/ended; exit' TERM; echo ready; sleep 60 & wait"
    with pytest.raises(KeyboardInterrupt), start_inside(inside, ["sh", "-c", script]) as started:
        assert started.stdout is not None and started.stdout.readline() == "ready\n"
        raise KeyboardInterrupt
    assert (tmp_path / "ended").exists()


def test_ctrl_c_at_the_end_of_a_command_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_gone(*_: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", is_gone)
    inside = build_sandbox(build_root().path, [])
    with pytest.raises(KeyboardInterrupt), start_inside(inside, ["sleep", "0.2"]):
        raise KeyboardInterrupt


def test_what_bwrap_says_of_a_command_comes_in_parts() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b'{\n    "child-pid": 6820')
    rest = threading.Timer(0.1, os.write, (write_end, b"0\n}\n"))
    rest.start()
    assert json.loads(read_info(read_end)) == {"child-pid": 68200}
    rest.join()
    os.close(write_end)
    assert read_info(read_end) == b""
    os.close(read_end)


def test_a_command_in_the_root_has_its_own_exit_status() -> None:
    with start_inside(build_sandbox(build_root().path, []), ["sh", "-c", "exit 7"]) as started:
        started.communicate()
    assert started.returncode == 7


def test_a_build_that_was_killed_starts_anew(tmp_path: Path) -> None:
    """A part of a file that make did not see would break every later build."""
    with suppress(KeyboardInterrupt), whole_files_only(tmp_path):
        (tmp_path / "interrupted.o").touch()
        raise KeyboardInterrupt
    with whole_files_only(tmp_path):
        assert (tmp_path / "interrupted.o").exists()
    (tmp_path / "make-is-running").touch()
    with whole_files_only(tmp_path):
        assert not (tmp_path / "interrupted.o").exists()


@pytest.mark.parametrize("module", [K2, CHARIO], ids=lambda module: module.name)
@pytest.mark.parametrize("release", MODULE_RELEASES)
def test_modules_build_for_32_bits_without_64_bit_divisions(release: str, module: Module) -> None:
    """Which a 32-bit kernel has no function for."""
    built = build_module(build_kernel(find_source(release=release), BITS32), module)
    undefined = subprocess.run(["nm", "-u", built], capture_output=True, text=True, check=True)
    assert re.findall(r"__\w*(?:div|mod)di3", undefined.stdout) == []
