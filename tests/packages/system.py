# SPDX-License-Identifier: MIT OR Apache-2.0
"""The questions to a Debian system, booted (machine.py) or not (root.py)."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steady_lab.paths import BUILD

PACKAGES = BUILD / "packages"
WORK = BUILD / "tests" / "work" / "packages"
SHARE = "/media/share"
# Files that have a name of ours and belong to no package. Debian 12 packages a kernel's as /lib/...
LEFT = f"""\
find / -xdev -path {SHARE} -prune -o \\
	\\( -name '*k2*' -o -name '*chario*' -o -name '*steady*' \\) -print | while read -r file; do
	dpkg --search "$file" >/dev/null 2>&1 || dpkg --search "${{file#/usr}}" >/dev/null 2>&1 ||
		echo "$file"
done
"""


@dataclass(frozen=True)
class Ran:
    """How a script ended, and its output on the terminal."""

    status: int
    output: str


class System(Protocol):
    """Runs scripts as root in root's folder, and shares a folder as SHARE."""

    share: Path

    def run(self, text: str) -> Ran:
        """Run one."""
        ...


def run(system: System, text: str) -> str:
    """What a script printed that must succeed."""
    ran = system.run(text)
    assert ran.status == 0, ran.output
    return ran.output


def put_packages(system: System, packages: Path) -> None:
    """Put the packages where the guide's reader has them."""
    place = system.share / "packages"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for package in packages.glob("*.deb"):
        shutil.copy(package, place)
    run(system, f"rm -f *.deb; cp {SHARE}/packages/*.deb .")


def use_archives(system: System, *names: str) -> None:
    """Let apt read these archives of the shared folder, and no other."""
    lines = "".join(f"deb [trusted=yes] file:{SHARE}/{name} ./\n" for name in names)
    (system.share / "sources.list").write_text(lines)
    run(system, f"cp {SHARE}/sources.list /etc/apt/ && apt update")


def modules(system: System, kernel: str) -> set[str]:
    """Names of our modules that are installed for a kernel."""
    found = run(system, f"ls /lib/modules/{kernel}/updates/dkms 2>/dev/null || true")
    return {name.partition(".")[0] for name in found.split()}


def left(system: System) -> str:
    """What a purge left behind; the packages' own files are out of the way."""
    return run(system, f"rm -f *.deb\n{LEFT}")


def known_series() -> set[str]:
    """The series that k2-dkms has headers of."""
    (package,) = PACKAGES.glob("k2-dkms_*.deb")
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as packed:
        done = subprocess.run(
            ["tar", "-t"], stdin=packed.stdout, capture_output=True, text=True, check=True
        )
    return set(re.findall(r"/private/([\d.]+)/version$", done.stdout, re.MULTILINE))
