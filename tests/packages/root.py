# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Debian system unpacked on disk, not booted: its programs run on this machine's kernel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from system import SHARE, Ran

AS_ROOT = () if os.geteuid() == 0 else ("sudo",)
# /sys is read-only: a queue in there is one of this machine.
ENTER = f"""\
set -e
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t devpts devpts "$1/dev/pts"
mkdir -p "$1{SHARE}"
mount --bind "$2" "$1{SHARE}"
cd "$1"
exec chroot . env -i -C /root HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
	PATH=/usr/sbin:/usr/bin:/sbin:/bin sh "{SHARE}/script"
"""


class Root:
    """A folder with a system, and the folder that it finds as SHARE."""

    def __init__(self, tar: Path, folder: Path, share: Path) -> None:
        self.share = share
        self._folder = folder
        self.remove()
        folder.mkdir(parents=True)
        subprocess.run([*AS_ROOT, "tar", "-xpf", tar, "-C", folder], check=True)

    def run(self, text: str) -> Ran:
        """Run a script as root in root's folder."""
        print(f"--- in {self._folder.name}:\n{text.rstrip()}\n---", flush=True)
        (self.share / "script").write_text(text)
        command = [
            *(*AS_ROOT, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"),
            *("sh", "-c", ENTER, "sh", self._folder, self.share),
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        print(done.stdout, end="", flush=True)
        return Ran(done.returncode, done.stdout)

    def remove(self) -> None:
        """Its files belong to root."""
        subprocess.run([*AS_ROOT, "rm", "-rf", "--one-file-system", self._folder], check=True)
