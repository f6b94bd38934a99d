# SPDX-License-Identifier: MIT OR Apache-2.0
"""What scripts/release refuses, in a repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from steady_lab.paths import PROJECT

FILES = {
    "device/Cargo.toml": '[workspace.package]\nversion = "1.2.3"\n',
    "lab/pyproject.toml": '[project]\nversion = "1.2.3"\n',
    "packaging/debian/changelog": "steadyio (1.2.3) unstable; urgency=medium\n",
    "packaging/buildroot/package/k2/k2.mk": "K2_VERSION = 1.2.3\n",
    "packaging/buildroot/package/steadyio/steadyio.mk": "STEADYIO_VERSION = 1.2.3\n",
    "integrations/rosbag2/package.xml": "  <version>1.2.3</version>\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3\n\n## 1.2.2\n",
}


def git(folder: Path, *words: str) -> None:
    names = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(work: Path) -> Path:
    (work / "scripts").mkdir()
    shutil.copy(PROJECT / "scripts" / "release", work / "scripts")
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "--message", "all")
    return work


def dry_run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["scripts/release", "--dry-run"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_dry_run_says_what_would_be_tagged_and_tags_nothing(repository: Path) -> None:
    done = dry_run(repository)
    assert done.returncode == 0 and "tag v1.2.3" in done.stdout, done.stderr
    tags = subprocess.run(["git", "tag"], cwd=repository, capture_output=True, check=True)
    assert tags.stdout == b""


@pytest.mark.parametrize("name", [name for name in FILES if name != "device/Cargo.toml"])
def test_a_place_with_another_version_is_named(name: str, repository: Path) -> None:
    (repository / name).write_text(FILES[name].replace("1.2.3", "1.2.4"))
    git(repository, "commit", "--all", "--message", "another version")
    done = dry_run(repository)
    assert done.returncode == 1
    assert f"{name} names 1.2.4, device/Cargo.toml names 1.2.3" in done.stderr


def test_a_changelog_without_a_version_is_refused(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    git(repository, "commit", "--all", "--message", "unreleased")
    assert "CHANGELOG.md names no version" in dry_run(repository).stderr


def test_uncommitted_changes_are_refused(repository: Path) -> None:
    (repository / "new").touch()
    assert "uncommitted changes" in dry_run(repository).stderr


def test_a_tag_that_is_there_is_refused(repository: Path) -> None:
    git(repository, "tag", "v1.2.3")
    assert "the tag v1.2.3 already exists" in dry_run(repository).stderr
