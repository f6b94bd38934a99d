# SPDX-License-Identifier: MIT OR Apache-2.0
"""Download packages of the lab's roots from Debian's archive, on any system that has apt.

apt runs with a configuration of its own below the cache: the system's packages and sources are
left alone. Debian's signature is checked by apt, each file's hash against the lock.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.paths import cache_dir
from steady_lab.root.lock import (
    ARCHITECTURES_ARM,
    BACKPORTS_13,
    BUILD,
    BUILD_13,
    BUILD_ARM,
    EMULATOR_13,
    GUEST,
    GUEST_ARM64,
    GUEST_ARMHF,
    LINUX,
    LOCK,
    NATIVE,
    OBJTOOL,
    PROMETHEUS,
    SERVICES,
    STOCK,
    Package,
    architecture,
    check_file,
    is_for_arm,
    is_of_debian_13,
    wanted,
)

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBOOTSTRAP = Path("/usr/sbin/debootstrap")


def packages_dir() -> Path:
    """Where downloaded packages are kept."""
    return cache_dir() / "packages"


def fetch(packages: Sequence[Package]) -> list[Path]:
    """Return the packages' files, verified; downloads missing ones.

    Raises LabError if the archive does not have a package in the version of the lock.
    """
    folder = packages_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [package for package in packages if not (folder / package.file).is_file()]
        for purpose, some in groupby(missing, lambda package: package.purpose):
            _download(list(some), folder, purpose)
    return [folder / package.file for package in packages]


def _download(packages: Sequence[Package], folder: Path, purpose: str) -> None:
    """Download next to the final place, and move verified files there."""
    mib = sum(package.bytes for package in packages) >> 20
    debian = "Debian 13" if is_of_debian_13(purpose) else "Debian 12"
    print(f"downloading {len(packages)} packages of {debian} ({mib} MiB)", file=sys.stderr)
    apt = _apt(purpose)
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    names = [package.wish for package in packages]
    done = apt.run(["download", *names], cwd=partial, show=True)
    if done.returncode != 0:
        raise LabError(
            f"apt-get download failed, see the messages above. If the archive no longer has a "
            f"version that {LOCK} names, let STEADYIO_DEBIAN_MIRROR name one that has it, or put "
            f"the .deb file into {folder}."
        )
    for package in packages:
        check_file(partial / package.file, package)
        (partial / package.file).rename(folder / package.file)
    partial.rmdir()


def resolve() -> list[Package]:
    """Resolve wanted.toml and its dependencies in the current archive."""
    lists, packages = wanted(), []
    arm = (GUEST_ARM64, GUEST_ARMHF, BUILD_ARM)
    for purpose in (GUEST, BUILD, BUILD_13, EMULATOR_13, *arm, SERVICES):
        packages += _with_needed(purpose, list(lists[purpose]))
    alone = {purpose: list(lists[purpose]) for purpose in (OBJTOOL, PROMETHEUS)}
    alone |= {f"{LINUX}-{release}": [name] for release, name in lists[LINUX].items()}
    alone |= {f"{STOCK}-{kernel}": names for kernel, names in lists[STOCK].items()}
    for purpose, names in alone.items():
        packages += _alone(_apt(purpose), purpose, names)
    return packages


def _with_needed(purpose: str, names: Sequence[str]) -> list[Package]:
    """Packages and their dependencies; those of another architecture without dependencies."""
    apt = _apt(purpose)
    foreign = [name for name in names if ":" in name]
    own = [name for name in names if ":" not in name]
    suite = ["-t", BACKPORTS_13] if purpose == EMULATOR_13 else []
    return apt.describe(purpose, apt.closure([*suite, *own])) + _alone(apt, purpose, foreign)


def _alone(apt: Apt, purpose: str, names: Sequence[str]) -> list[Package]:
    versions = apt.closure(names)
    return apt.describe(purpose, {name: versions[name] for name in names}) if names else []


def _apt(purpose: str) -> Apt:
    """Where packages of a purpose are found; reads the archive's lists."""
    if is_of_debian_13(purpose):
        apt = Apt(wanted()["debian-13"]["suites"], "apt-13")
    elif is_for_arm(purpose):
        own = architecture(purpose)
        apt = Apt(home="apt-arm", architectures=(own, *ARCHITECTURES_ARM))
    else:
        apt = Apt()
    apt.update()
    return apt


class Apt:
    """apt-get with its own configuration, lists and status.

    `suites` are those of Debian 12 in wanted.toml, unless others are named; each set has a `home`.
    Of `architectures` the first is the system's.
    """

    def __init__(
        self,
        suites: Sequence[str] | None = None,
        home: str = "apt",
        architectures: Sequence[str] = (NATIVE,),
    ) -> None:
        if not shutil.which("apt-get"):
            raise LabError(
                f"apt-get is missing: fetch the packages that {LOCK} names on a system that has "
                f"it, and put their .deb files into {packages_dir()}"
            )
        folder = cache_dir() / home
        for name in ("lists/partial", "archives/partial", "empty"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self.archives = folder / "archives"
        self._architecture = architectures[0]
        mirror, suites = debian_mirror(), suites or wanted()["suites"]
        lines = [f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in suites]
        (folder / "sources").write_text("".join(lines))
        settings = {
            "APT::Sandbox::User": "root",
            "APT::Architecture": architectures[0],
            "APT::Architectures": ",".join(dict.fromkeys(architectures)),
            "Acquire::Check-Valid-Until": "false",
            "Dir::Etc::SourceList": f"{folder}/sources",
            "Dir::Etc::SourceParts": f"{folder}/empty",
            "Dir::State::Lists": f"{folder}/lists",
            "Dir::State::Status": f"{folder}/status",
            "Dir::Cache": f"{folder}",
            "Dir::Cache::archives": str(self.archives),
        }
        self._options = [word for item in settings.items() for word in ("-o", "=".join(item))]

    def update(self) -> None:
        """Read the archive's lists; raises LabError if it cannot be reached."""
        done = self.run(["update"])
        if done.returncode != 0:
            raise LabError(f"apt-get update failed: is the network up?\n{done.stderr.strip()}")

    def run(
        self, words: Iterable[str], cwd: Path | None = None, show: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run apt-get; `show`: its progress on a terminal, and its errors."""
        quiet = [] if show and sys.stdout.isatty() else ["-qq"]
        command = ["apt-get", *quiet, *self._options, *words]
        environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(
            command, cwd=cwd, text=True, check=False, env=environment, capture_output=not show
        )

    def closure(self, names: Sequence[str], recommends: bool = False) -> dict[str, str]:
        """Return the packages that an installation of `names` brings, with their versions."""
        done = self.run(["install", "--simulate", *_recommends(recommends), *names])
        if done.returncode != 0:
            raise LabError(f"apt-get install --simulate failed:\n{done.stderr.strip()}")
        return dict(re.findall(r"^Inst (\S+) \((\S+) ", done.stdout, re.MULTILINE))

    def download(self, names: Sequence[str], recommends: bool = False) -> list[Path]:
        """Download what an installation of `names` brings, and keep it; returns the files."""
        versions = self.closure(names, recommends)
        words = ["install", "--download-only", "--yes", *_recommends(recommends), *names]
        if self.run(words, show=True).returncode != 0:
            raise LabError("apt-get install --download-only failed, see the messages above")
        files = []
        for name, version in versions.items():
            (file,) = self.archives.glob(f"{name}_{version.replace(':', '%3a')}_*.deb")
            files.append(file)
        return files

    def names(self, prefix: str) -> list[str]:
        """Names of the archive's packages that begin so."""
        command = ["apt-cache", *self._options, "pkgnames", prefix]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def describe(self, purpose: str, versions: Mapping[str, str]) -> list[Package]:
        """Return packages with their hashes, as the archive's signed lists have them."""
        names = [f"{name}={version}" for name, version in versions.items()]
        command = ["apt-cache", *self._options, "show", *names]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = {}
        for paragraph in text.split("\n\n"):
            fields = dict(re.findall(r"^(\w+): (\S+)$", paragraph, re.MULTILINE))
            if fields:
                found[fields["Package"], fields["Version"], fields["Architecture"]] = fields
        packages = []
        for wish, version in versions.items():
            name, _, foreign = wish.partition(":")
            own = (foreign,) if foreign else (self._architecture, "all")
            fields = next(found[key] for of in own if (key := (name, version, of)) in found)
            size, sha256 = int(fields["Size"]), fields["SHA256"]
            packages.append(Package(purpose, name, version, fields["Architecture"], size, sha256))
        return packages


def _recommends(taken: bool) -> Sequence[str]:
    return () if taken else ("--no-install-recommends",)


def debian_mirror() -> str:
    """Return $STEADYIO_DEBIAN_MIRROR, or the archive of this system's apt or of debootstrap.

    Raises LabError if none of them names one.
    """
    named = os.environ.get("STEADYIO_DEBIAN_MIRROR")
    if named:
        return named
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    known = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    mirrors = [uri for uri in known if uri.rstrip("/").endswith("/debian")]
    if not mirrors and DEBOOTSTRAP.is_file():
        mirrors = re.findall(r'^DEF_MIRROR="(\S*/debian)"$', DEBOOTSTRAP.read_text(), re.MULTILINE)
    if not mirrors or not KEYRING.is_file():
        raise LabError(
            "Debian's archive: not named by this system's apt, or debian-archive-keyring is missing"
            " (install debian-archive-keyring, and debootstrap, which names the archive, or set"
            " STEADYIO_DEBIAN_MIRROR to its URL)"
        )
    return mirrors[0]
