# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's own Debian: only what the lock names gets in, and nothing of the host is in sight."""

import os
from pathlib import Path

import pytest
from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT, cache_dir
from steady_lab.root import lock
from steady_lab.root.apt import fetch
from steady_lab.root.compiler import compile_inside
from steady_lab.root.lock import Package, architecture, check_file, locked_packages, wanted
from steady_lab.root.root import GUESTS, build_root, guest_root
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml


def package(name: str = "steadyio-test") -> Package:
    return Package("guest", name, "1:2.0", "amd64", 4, "0" * 64)


@pytest.mark.parametrize("purpose", [*GUESTS.values(), "build", "build-13", "build-arm"])
def test_all_that_is_wanted_is_locked(purpose: str) -> None:
    own = (architecture(purpose), "all")
    locked = {
        one.name if one.architecture in own else f"{one.name}:{one.architecture}"
        for one in locked_packages(purpose)
    }
    assert set(wanted()[purpose]) - locked == set()


def test_every_release_has_one_source() -> None:
    for release, name in wanted()["linux"].items():
        assert [package.name for package in locked_packages(f"linux-{release}")] == [name]


def test_a_damaged_lock_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "packages.lock"
    damaged.write_text("# head\nguest fio 3.33-3 amd64 many 00\n")
    monkeypatch.setattr(lock, "LOCK", damaged)
    with pytest.raises(LabError, match=r"packages\.lock:2: expected six fields"):
        locked_packages("guest")


def test_a_file_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / package().file).write_text("else")
    with pytest.raises(LabError, match="SHA-256 is .* wants 0000"):
        check_file(tmp_path / package().file, package())


def test_an_archive_out_of_reach_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYIO_CACHE", str(tmp_path))
    monkeypatch.setenv("STEADYIO_DEBIAN_MIRROR", f"file://{tmp_path}/no-archive")
    with pytest.raises(LabError, match="apt-get update failed"):
        fetch([package()])
    assert not list((tmp_path / "packages").glob("*.deb"))


def test_roots_are_the_same_files_for_every_user() -> None:
    for root in (guest_root().path, build_root().path):
        files = [path for path in root.rglob("*") if not path.is_symlink()]
        assert {path.stat().st_mode & 0o7777 for path in files} == {0o644, 0o755}
        assert {path.lstat().st_mtime_ns for path in files} == {1_767_225_600_000_000_000}


def test_guest_sees_nothing_of_the_host(work: Path) -> None:
    script = """
        cat /proc/cpuinfo /proc/mounts; uname -a; hostname; fio --version
        ls -a / /tmp /run/steadyio /home /root /etc/ld.so.cache; find / -xdev -newermt 2026-01-02"""
    output = uml().boot(BootRequest(["sh", "-c", script], work)).output
    assert "fio-3.33" in output
    host = os.uname()
    secrets = [host.nodename, host.release, str(PROJECT), str(cache_dir()), str(Path.home())]
    secrets += [str(path) for path in Path("/home").iterdir()]
    assert [secret for secret in secrets if len(secret) > 5 and secret in output] == []


def test_what_is_built_is_the_same_bytes_wherever_it_is_built(tmp_path: Path) -> None:
    made = []
    for name in ("a", "any, other name"):
        source = tmp_path / name / "x.c"
        source.parent.mkdir()
        source.write_text("int main(void) { return __FILE__[0]; }\n")
        compile_inside([source], tmp_path / name / "x", ["-g", "-O2"])
        made.append((tmp_path / name / "x").read_bytes())
    assert made[0] == made[1]
    built = (BUILD / "bin" / "steady").read_bytes()
    assert str(PROJECT / "device").encode() not in built
