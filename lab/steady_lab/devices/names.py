# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of the lab's devices: experiments/devices/NAME.toml, as figures name them."""

from __future__ import annotations

from pathlib import Path

from steady_lab.errors import SpecError
from steady_lab.paths import PROJECT

DEVICES = PROJECT / "experiments" / "devices"


def device_names() -> list[str]:
    """Return the names of all devices of the lab, sorted."""
    return sorted(path.stem for path in DEVICES.glob("*.toml"))


def device_file(text: str) -> Path:
    """Return the spec of a device: of a file here or in the project, or of a name.

    Raises SpecError, which lists the names.
    """
    path = Path(text)
    for found in (path, PROJECT / path, DEVICES / f"{text}.toml"):
        if text and found.is_file():
            return found
    known = ", ".join(device_names())
    raise SpecError(f"{text}: no such device or file (devices: {known}; or a path to a TOML file)")
