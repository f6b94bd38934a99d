# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's archive as local ones: of a day before a kernel's update, and of today.

The guest has no network. In `before` the packages that name a system's kernel name the one before
the newest; `after` is what the archive has today; `other` is what backports add for a kernel of a
series that k2-dkms has no headers of. A user gets the versions of today, and so does the test,
which prints them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.root.apt import Apt

# What a system has before anything is installed, next to the essential packages.
SYSTEM = (
    *("apt", "systemd-sysv", "udev", "kmod", "util-linux", "procps"),
    *("initramfs-tools", "linux-image-amd64"),
)
# Named by a user, or by our packages.
NEEDED = ("linux-headers-amd64", "dkms", "python3", "fio")
# Which name the kernel of a system.
META = ("linux-image-amd64", "linux-headers-amd64")
# Names the files that an archive is made of.
CONTENTS = "contents"


@dataclass(frozen=True)
class Release:
    """A release of Debian; `kernels` matches the releases of its kernels, as in `uname -r`.

    `others` matches those in its backports, and takes their series as a group.
    """

    suite: str
    kernels: str
    others: str = ""


DEBIAN_12 = Release(suite="bookworm", kernels=r"6\.1\.0-\d+-amd64")
DEBIAN_13 = Release(
    suite="trixie",
    kernels=r"6\.12\.[\d.]+\+deb13[\d.]*-amd64",
    others=r"(\d+\.\d+)\.[\d.]+\+deb13[\d.]*-cloud-amd64",
)


@dataclass(frozen=True)
class Archive:
    """The archives in `folder`, and what kernels they have, as `uname -r` prints them."""

    folder: Path
    old_kernel: str
    new_kernel: str
    other_kernel: str | None


def make_archive(release: Release, folder: Path, known: Collection[str]) -> Archive:
    """Download what is missing, and lay it out in `folder`; raises LabError.

    `known`: the series that k2-dkms has headers of.
    """
    backports = f"{release.suite}-backports"
    suites = [release.suite, backports] if release.others else [release.suite]
    apt = Apt(suites, f"apt-{release.suite}")
    apt.update()
    kernels = _kernels(apt, release.kernels)
    if len(kernels) < 2:
        raise LabError(
            f"the archive of {release.suite} has {kernels}: an upgrade needs two kernels"
        )
    old, new = kernels[-2:]
    named = [name for kernel in (old, new) for name in _packages_of(kernel)]
    after = apt.download(["?essential", *SYSTEM, *NEEDED, *named], recommends=True)
    before = [file for file in after if not _is_of(file, new) and _name(file) not in META]
    _lay_out(folder / "after", after)
    made = [_name_the_old_kernel(meta, old, folder) for meta in META]
    _lay_out(folder / "before", [*before, *made])
    other = _other_kernel(apt, release, known) if release.others else None
    if other:
        wanted = [f"{name}/{backports}" for name in _packages_of(other)]
        _lay_out(folder / "other", [file for file in apt.download(wanted) if file not in after])
    return Archive(folder, old, new, other)


def _other_kernel(apt: Apt, release: Release, known: Collection[str]) -> str:
    headers = set(apt.names("linux-headers-"))
    for kernel in _kernels(apt, release.others):
        found = re.fullmatch(release.others, kernel)
        if found and found[1] not in known and f"linux-headers-{kernel}" in headers:
            return kernel
    raise LabError(f"the backports of {release.suite} have no kernel but of {sorted(known)}")


def _kernels(apt: Apt, pattern: str) -> list[str]:
    """Releases of the kernels in the archive, the newest last."""
    names = apt.names("linux-image-")
    found = [name.removeprefix("linux-image-") for name in names]
    return sorted(
        (name for name in found if re.fullmatch(pattern, name)),
        key=lambda name: [int(number) for number in re.findall(r"\d+", name)],
    )


def _packages_of(kernel: str) -> Sequence[str]:
    return (f"linux-image-{kernel}", f"linux-headers-{kernel}")


def _name(file: Path) -> str:
    return file.name.partition("_")[0]


def _is_of(file: Path, kernel: str) -> bool:
    return _name(file).endswith(f"-{kernel}")


def _lay_out(folder: Path, files: Sequence[Path]) -> None:
    """Make an archive unless it is there: to index one takes long."""
    text = "".join(f"{file.name}\n" for file in files)
    contents = folder / CONTENTS
    if contents.is_file() and contents.read_text() == text:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder)
    _write_index(folder)
    contents.write_text(text)


def _name_the_old_kernel(meta: str, kernel: str, folder: Path) -> Path:
    """Make the package as the archive had it before; it has dependencies only."""
    (original,) = (folder / "after").glob(f"{meta}_*.deb")
    needed = meta.replace("amd64", kernel)
    (file,) = (folder / "after").glob(f"{needed}_*.deb")
    version = file.name.split("_")[1]
    place = folder / "made" / meta
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "--raw-extract", original, place], check=True)
    control = place / "DEBIAN" / "control"
    text = re.sub(r"^Version: .*", f"Version: {version}", control.read_text(), flags=re.M)
    text = re.sub(r"^Depends: .*", f"Depends: {needed} (= {version})", text, flags=re.M)
    control.write_text(text)
    made = folder / "made" / f"{meta}_{version}_amd64.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(place), str(made)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return made


def _write_index(place: Path) -> None:
    with (place / "Packages").open("w") as file:
        command = ["dpkg-scanpackages", "--multiversion", "."]
        subprocess.run(command, cwd=place, stdout=file, stderr=subprocess.PIPE, check=True)
