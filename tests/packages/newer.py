# SPDX-License-Identifier: MIT OR Apache-2.0
"""The built packages once more, as a newer version."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def make_newer(packages: Path, version: str, folder: Path) -> None:
    """Pack each package of `packages` again into `folder`, its version replaced everywhere."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in sorted(packages.glob("*.deb")):
        name, old, _ = package.name.split("_")
        place = folder / "unpacked"
        subprocess.run(["dpkg-deb", "--raw-extract", package, place], check=True)
        for path in place.glob(f"usr/src/*-{old}"):
            path.rename(path.with_name(path.name.replace(old, version)))
        named = [*(place / "DEBIAN").iterdir(), *place.glob("usr/src/*/dkms.conf")]
        for file in named:
            text = file.read_text(encoding="utf-8").replace(old, version)
            file.write_text(text, encoding="utf-8")
        command = ["dpkg-deb", "--root-owner-group", "--build", str(place), str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(place)
