# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a boot of a figure runs, and how a record comes of it.

`steady bench` writes the record itself. An application (boots/application.py) and a recording
(boots/recording.py) leave outputs in the work folder, from which the lab makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from steady_lab.boots.application import (
    CARD_IMAGE,
    Application,
    Prepared,
    give,
    prepare,
    take_back,
)
from steady_lab.devices.spec import DeviceSpec
from steady_lab.figures.application_record import application_record
from steady_lab.figures.spec import Figure
from steady_lab.paths import GUEST_PROJECT, GUEST_WORK, PROJECT

BENCH = "build/bin/steady"  # in the project, on the host and in the guest


class Load(Protocol):
    """A figure's load, the same for all of its variants."""

    @property
    def card_image(self) -> str | None:
        """Return the file in the work folder with the card's contents, if there is one."""

    def identity(self) -> dict[str, str]:
        """Return what decides the result besides kernel, programs, device and workload."""

    def give(self, folder: Path) -> None:
        """Put files into a boot's work folder, before it."""

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Return what the guest runs; its paths are the guest's."""

    def finish(self, variant: str, folder: Path) -> dict[str, Any] | None:
        """Return the record of a finished boot, None if the guest wrote it; tidy the folder."""


def load_of(figure: Figure) -> Load:
    """Return a figure's load, prepared; raises LabError if that fails."""
    application = figure.workload.application
    if application:
        return ApplicationLoad(figure, application, prepare(application))
    return BenchLoad(figure)


@dataclass(frozen=True)
class BenchLoad:
    """fio, by `steady bench`."""

    figure: Figure
    card_image: None = None

    def identity(self) -> dict[str, str]:
        """Nothing else decides."""
        return {}

    def give(self, folder: Path) -> None:
        """It needs no other files than every boot has."""

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Let it write the record."""
        return [
            f"{GUEST_PROJECT}/{BENCH}",
            "bench",
            f"{GUEST_WORK}/workload.toml",
            *("--device", device.node),
            *("--destroy-data", Path(device.node).name),
            *("--variant", variant),
            *(f"--set={key}={value}" for key, value in self.figure.settings.items()),
            *("--out", f"{GUEST_WORK}/record.json"),
        ]

    def finish(self, variant: str, folder: Path) -> None:
        """The guest wrote the record."""


@dataclass(frozen=True)
class ApplicationLoad:
    """A real program, under `steady with`."""

    figure: Figure
    application: Application
    prepared: Prepared
    card_image: str = CARD_IMAGE

    def identity(self) -> dict[str, str]:
        """The programs and what they were given."""
        return {"application": self.prepared.sha256}

    def give(self, folder: Path) -> None:
        """Copy the card's image and whatever else `run` needs."""
        give(self.prepared, folder)

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Run it with the variant's knobs."""
        workload = self.figure.workload
        knobs = workload.variant(variant).knobs
        return [
            *(f"{GUEST_PROJECT}/{BENCH}", "with", "--device", device.node),
            *(f"--knob={key}={value}" for key, value in knobs.items()),
            *("--out", f"{GUEST_WORK}/settings.json", "--"),
            f"{GUEST_PROJECT}/{self.application.folder.relative_to(PROJECT)}/run",
            *(str(self.application.events), str(workload.seed), self.application.background),
        ]

    def finish(self, variant: str, folder: Path) -> dict[str, Any]:
        """Read what the programs said, and remove the copies."""
        take_back(self.prepared, folder)
        return application_record(self.figure.workload, variant, folder)
