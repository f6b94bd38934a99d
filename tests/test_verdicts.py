# SPDX-License-Identifier: MIT OR Apache-2.0
"""A verdict is taken from the cache only if nothing has changed that decides the test."""

import json
import platform
import subprocess
from functools import cache
from pathlib import Path

import crates
import pytest
import verdicts
from steady_lab.paths import PROJECT

FILE = "tests/report/test_some.py"
FILES = (FILE, "tests/report/seen.py", "tests/conftest.py", "lab/a.py", "device/b.rs", "docs/c.md")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*FILES, *verdicts.BUILT_OF):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was\n")
    (tmp_path / ".gitignore").write_text("/build/\n")
    (tmp_path / "packages").write_text("chromium 1\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for name in ("key_of", "_hash", "_tracked", "_kept"):
        # The session's own go on with what they know.
        monkeypatch.setattr(verdicts, name, cache(getattr(verdicts, name).__wrapped__))
    monkeypatch.setattr(verdicts, "PROJECT", tmp_path)
    monkeypatch.setattr(verdicts, "PACKAGES", tmp_path / "packages")
    monkeypatch.setattr(verdicts, "KEPT", tmp_path / "verdicts.json")
    return tmp_path


def key(*folders: str) -> str:
    verdicts.key_of.cache_clear()
    verdicts._hash.cache_clear()
    verdicts._tracked.cache_clear()
    return verdicts.key_of(FILE, folders or ("device", "lab"))


@pytest.mark.parametrize("changed", [*FILES[:-1], "packages", *verdicts.BUILT_OF, "lab/new.py"])
def test_one_byte_of_what_a_test_reads_makes_it_run_again(changed: str, clone: Path) -> None:
    before = key()
    (clone / changed).write_text("As it was\n")
    assert key() != before


def test_a_program_counts_by_what_is_in_it_not_by_its_sources(clone: Path) -> None:
    before = key(*verdicts.SOURCES)
    (clone / "device" / "b.rs").write_text("changed\n")
    assert key(*verdicts.SOURCES) == before
    for program in verdicts.BUILT_OF:
        (clone / program).write_text("As it was\n")
        assert key(*verdicts.SOURCES) != before
        (clone / program).write_text("as it was\n")


def test_a_crate_is_decided_by_what_cargo_builds_it_of() -> None:
    words = ["cargo", "metadata", "--no-deps", "--format-version=1"]
    done = subprocess.run(words, cwd=PROJECT / "device", capture_output=True, text=True, check=True)
    found, rest = set(), {"steadyio-python"}
    packages = {one["name"]: one for one in json.loads(done.stdout)["packages"]}
    while rest:
        package = packages[rest.pop()]
        found.add(str(Path(package["manifest_path"]).parent.relative_to(PROJECT)))
        below = [one for one in package["dependencies"] if one.get("path")]
        rest |= {one["name"] for one in below if one["kind"] != "dev"}
    named = {path for path in crates.decide("steadyio-python") if (PROJECT / path).is_dir()}
    assert named == found
    assert "device/recorder" in found and "device/trace" not in found


def test_a_setting_makes_it_run_again(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setenv("STEADY_CUTS", "7")
    assert key() != before


def test_another_kernel_runs_it_again(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(platform, "release", lambda: "another kernel")
    assert key() != before


def test_another_processor_runs_it_again(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "PROCESSOR", clone / "cpuinfo")
    (clone / "cpuinfo").write_text("model name\t: one\ncpu MHz\t: 2000\n")
    before = key()
    (clone / "cpuinfo").write_text("model name\t: one\ncpu MHz\t: 2100\n")
    assert key() == before
    (clone / "cpuinfo").write_text("model name\t: another\ncpu MHz\t: 2000\n")
    assert key() != before


def test_what_it_does_not_read_changes_nothing(clone: Path) -> None:
    before = key()
    (clone / "docs" / "c.md").write_text("as it is\n")
    assert key() == before


def test_a_verdict_is_kept_unless_a_file_changed_meanwhile(clone: Path) -> None:
    passed = {f"{FILE}::test_a": (key(), ("device", "lab"))}
    (clone / "lab" / "a.py").write_text("edited during the session\n")
    verdicts.keep(passed)
    assert verdicts._kept() == {}
    (clone / "lab" / "a.py").write_text("as it was\n")
    verdicts.keep(passed)
    verdicts._kept.cache_clear()
    assert verdicts._kept() == {f"{FILE}::test_a": [key()]}


@pytest.mark.reads("lab")
def test_a_test_that_reads_what_its_mark_does_not_name_fails(
    request: pytest.FixtureRequest,
) -> None:
    with verdicts.watched(request.node):
        (PROJECT / "lab" / "pyproject.toml").read_text()
    with pytest.raises(pytest.fail.Exception, match="docs/index"), verdicts.watched(request.node):
        (PROJECT / "docs" / "index.md").read_text()
