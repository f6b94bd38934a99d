# SPDX-License-Identifier: MIT OR Apache-2.0
"""The packages of the lab's roots, and the hash of each.

lab/root/wanted.toml names what is wanted, by hand; lab/root/packages.lock all that follows from
it, by `steady-lab root lock`.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.paths import PROJECT

WANTED = PROJECT / "lab" / "root" / "wanted.toml"
LOCK = PROJECT / "lab" / "root" / "packages.lock"
# Tables of wanted.toml: what guests run, what builds it, what builds kernels for x86-64 besides,
# kernel sources, and stock kernels.
GUEST, BUILD, OBJTOOL, LINUX, STOCK = "guest", "build", "objtool", "linux", "stock"
# What builds modules for the kernels of Debian 13, and a newer QEMU, of its backports.
BUILD_13, EMULATOR_13 = "build-13", "emulator-13"
# What scrapes `steady watch` in its tests.
PROMETHEUS = "prometheus"
# A system with systemd and udev, which act on what `steady apply` writes, in its tests.
SERVICES = "services"
# For ARM: what guests run, and what builds it.
GUEST_ARM64, GUEST_ARMHF, BUILD_ARM = "guest-arm64", "guest-armhf", "build-arm"
NATIVE, ARCHITECTURES_ARM = "amd64", ("amd64", "arm64", "armhf")
BACKPORTS_13 = "trixie-backports"
HEAD = """\
# SPDX-License-Identifier: MIT OR Apache-2.0
# Written by `steady-lab root lock`: purpose, package, version, architecture, bytes, SHA-256.
"""


@dataclass(frozen=True, order=True)
class Package:
    """One line of the lock.

    `purpose`: a table of wanted.toml, or "linux-RELEASE" or "stock-KERNEL".
    """

    purpose: str
    name: str
    version: str
    architecture: str
    bytes: int
    sha256: str

    @property
    def wish(self) -> str:
        """What apt is asked for."""
        architecture = "" if self.architecture == "all" else f":{self.architecture}"
        return f"{self.name}{architecture}={self.version}"

    @property
    def file(self) -> str:
        """The name that apt gives to its file."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"


def wanted() -> dict[str, Any]:
    """The content of wanted.toml."""
    return tomllib.loads(WANTED.read_text(encoding="utf-8"))


def is_of_debian_13(purpose: str) -> bool:
    """Whether the packages of a purpose are of Debian 13, not of 12."""
    return purpose in wanted()["debian-13"]["purposes"]


def is_for_arm(purpose: str) -> bool:
    """Whether packages of ARM are among those of a purpose."""
    return purpose in wanted()["arm"]


def architecture(purpose: str) -> str:
    """The architecture of a purpose's packages, unless a package names another."""
    found: str = wanted()["arm"].get(purpose, NATIVE)
    return found


def locked_packages(purpose: str) -> list[Package]:
    """The packages for one purpose; raises LabError if there are none."""
    packages = [package for package in _read() if package.purpose == purpose]
    if not packages:
        raise LabError(f"{LOCK}: no package for {purpose}")
    return packages


def _read() -> list[Package]:
    packages = []
    for number, line in enumerate(LOCK.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        try:
            purpose, name, version, architecture, size, sha256 = line.split()
            packages.append(Package(purpose, name, version, architecture, int(size), sha256))
        except ValueError as error:
            raise LabError(f"{LOCK}:{number}: expected six fields: {line!r}") from error
    return packages


def write_lock(packages: list[Package]) -> None:
    """Write the lock file, sorted."""
    lines = [" ".join(map(str, astuple(package))) for package in sorted(packages)]
    LOCK.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def check_file(path: Path, package: Package) -> None:
    """Raise LabError unless a package's file is the one that the lock names."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != package.sha256:
        raise LabError(
            f"{path}: its SHA-256 is {found}, {LOCK.name} wants {package.sha256}. "
            "Remove the file; the next run downloads it again."
        )
