# SPDX-License-Identifier: MIT OR Apache-2.0
"""The packages in a Debian 12 and a 13 that are unpacked and not booted: kernels come and go.

The commands are those of docs/guides/install.md. The tests of a release are one story, in this
order: each needs the root as the one before leaves it. What needs a running kernel is in
installed.py. Called by `make test-packages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import guide
import pytest
from archive import DEBIAN_12, DEBIAN_13, Archive, Release, make_archive
from image import make_tar
from newer import make_newer
from root import Root
from system import PACKAGES, WORK, known_series, left, modules, put_packages, run, use_archives

NEWER = "0.1.1"
CHANGED_HEADER = """\
set -e
cd /usr/src/k2-*/private/$SERIES
sed -i 's/^struct elevator_mq_ops {/&\\n\\tint another;/' block/elevator.h
grep -q another block/elevator.h
echo another >version
dkms unbuild "k2/$(dpkg-query -f '${Version}' -W k2-dkms)" -k "$KERNEL"
apt install --reinstall "linux-headers-$KERNEL"
"""


@dataclass(frozen=True)
class Story:
    """A release, its archives, and its root."""

    release: Release
    archive: Archive
    root: Root


@pytest.fixture(scope="module", params=[DEBIAN_13, DEBIAN_12], ids=lambda release: release.suite)
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    release: Release = request.param
    archive = make_archive(release, WORK / release.suite / "share", known_series())
    tar = WORK / release.suite / "root.tar"
    make_tar(release, archive, tar)
    root = Root(tar, WORK / release.suite / "root", archive.folder)
    try:
        yield Story(release, archive, root)
    finally:
        root.remove()


def test_the_packages_are_installed_and_built(story: Story) -> None:
    use_archives(story.root, "before")
    put_packages(story.root, PACKAGES)
    run(story.root, guide.commands("Install"))
    assert modules(story.root, story.archive.old_kernel) == {"k2", "chario"}


def test_the_alert_rules_and_the_dashboard_are_there(story: Story) -> None:
    files = run(story.root, "cd /usr/share/steadyio && ls grafana/* prometheus/*").split()
    assert files == ["grafana/steadyio.json", "prometheus/steadyio.rules.yml"]


def test_the_group_that_may_declare_tasks_is_there(story: Story) -> None:
    assert run(story.root, "getent group steadyio").startswith("steadyio:")
    run(story.root, "grep steadyio /usr/lib/udev/rules.d/60-steadyio.rules")


def test_the_installed_examples_and_documents_are_enough_for_a_bound(story: Story) -> None:
    assert "robot" in run(story.root, "steady examples")
    made = "steady examples robot >tasks.toml; steady examples foresee-ncemad9d-usb >card.toml"
    run(story.root, f"{made}; steady bound card.toml tasks.toml")
    run(story.root, "steady apply card.toml tasks.toml --disk mmcblk0 --root /tmp/image")
    named = run(story.root, "steady bench --help | grep -o '/usr/share/doc/[^ ;)]*'").split()
    assert named
    run(story.root, f"cat {' '.join(named)} >/dev/null; rm -f tasks.toml card.toml")


def test_a_newer_kernel_gets_its_modules(story: Story) -> None:
    use_archives(story.root, "after")
    run(story.root, guide.commands("Upgrade"))
    assert modules(story.root, story.archive.new_kernel) == {"k2", "chario"}


def test_a_removed_kernel_takes_its_modules_along(story: Story) -> None:
    old = story.archive.old_kernel
    run(story.root, f"apt purge linux-image-{old} linux-headers-{old}")
    assert modules(story.root, old) == set()
    assert modules(story.root, story.archive.new_kernel) == {"k2", "chario"}


def test_a_kernel_of_another_series_is_installed_without(story: Story) -> None:
    other = story.archive.other_kernel
    if other is None:
        pytest.skip("k2 knows every series of this release")
    use_archives(story.root, "after", "other")
    output = run(story.root, f"apt install linux-image-{other} linux-headers-{other}")
    sentence = rf"^k2 is not built for {re.escape(other)}: it was checked with Linux .* only\.$"
    assert re.search(sentence, output, re.MULTILINE), output
    assert modules(story.root, other) == set()
    assert run(story.root, "dpkg --audit") == ""


def test_a_kernel_with_another_structure_is_installed_without(story: Story) -> None:
    """The headers that the package has are changed, and are of another version then."""
    new = story.archive.new_kernel
    series = ".".join(new.split(".")[:2])
    output = run(story.root, f"KERNEL={new}\nSERIES={series}\n{CHANGED_HEADER}")
    assert re.search(
        rf"^k2 is not built for {re.escape(new)}: .* and struct elevator_\w+"
        r"(, member [\w.]+)? is another than in those headers\.$",
        output, re.MULTILINE,
    ), output  # fmt: skip
    assert modules(story.root, new) == set()
    assert run(story.root, "dpkg --audit") == ""


def test_newer_packages_replace_the_first(story: Story) -> None:
    """Their headers are right again."""
    newer = story.archive.folder.parent / "newer"
    make_newer(PACKAGES, NEWER, newer)
    put_packages(story.root, newer)
    run(story.root, guide.commands("Install"))
    assert modules(story.root, story.archive.new_kernel) == {"k2", "chario"}
    assert run(story.root, "ls -d /usr/src/k2-*").split() == [f"/usr/src/k2-{NEWER}"]


def test_a_purge_after_that_of_the_headers_leaves_no_file(story: Story) -> None:
    """They say what DKMS would build. The root has no queue that k2 could be taken from."""
    run(story.root, f"apt purge linux-headers-amd64 linux-headers-{story.archive.new_kernel}")
    run(story.root, guide.commands("Remove", "apt "))
    assert left(story.root) == ""
    # Files may belong to it.
    run(story.root, "getent group steadyio")
