# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a boot of a figure runs: a command that writes record.json into the work folder.

`steady bench` measures itself; `steady with` makes the record of what an application
(application.py) or a recording (recording.py) left in the work folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steady_lab.devices.spec import DeviceSpec
from steady_lab.figures.application import (
    CARD_IMAGE,
    CLASSES,
    Application,
    Prepared,
    give,
    prepare,
    take_back,
)
from steady_lab.figures.recording import POOL, Recording, classes_of, recording_script
from steady_lab.figures.spec import Figure
from steady_lab.paths import GUEST_PROJECT, GUEST_WORK, PROJECT

SCRIPT = "recording.sh"
TIMEOUT_S = 900.0
# Under some schedulers a task waits for minutes (`none` on a card without a queue, next to
# write-back). That is a result; the kernel's 120 s would end the boot. A lost request still does.
HUNG_TASK_S = 1200
LET_WAIT = f'echo {HUNG_TASK_S} >/proc/sys/kernel/hung_task_timeout_secs && exec "$@"'
RECORDING_TIMEOUT_S = 3600.0  # an hour of recording, for one
# In the project, on the host and in the guest: see device/command.
GUEST_PROGRAM, WHOLE_PROGRAM = "build/bin/steady-guest", "build/bin/steady"
RECIPE_PROGRAM = "build/bin/steady-recipe"
RECORD = f"{GUEST_WORK}/record.json"


class Load(Protocol):
    """A figure's load, the same for all of its variants."""

    @property
    def timeout_s(self) -> float:
        """Return how long a boot may take on a busy machine."""

    @property
    def programs(self) -> tuple[str, ...]:
        """Return what of `steady` the guest runs; the first measures."""

    @property
    def card_image(self) -> str | None:
        """Return the file in the work folder with the card's contents, if there is one."""

    def identity(self) -> dict[str, str]:
        """Return what decides the result besides kernel, programs, device and workload."""

    def give(self, variant: str, folder: Path) -> None:
        """Put files into a boot's work folder, before it."""

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Return the guest's command; its paths are the guest's."""

    def tidy(self, folder: Path) -> None:
        """Remove what nobody needs from the work folder of a finished boot."""


def load_of(figure: Figure) -> Load:
    """Return a figure's load, prepared; raises LabError if that fails."""
    application = figure.workload.application
    if application:
        return ApplicationLoad(figure, application, prepare(application))
    recording = figure.workload.recording
    return RecordingLoad(figure, recording) if recording else BenchLoad(figure)


@dataclass(frozen=True)
class BenchLoad:
    """fio, by `steady bench`."""

    figure: Figure
    timeout_s: float = TIMEOUT_S
    programs: tuple[str, ...] = (GUEST_PROGRAM,)
    card_image: None = None

    def identity(self) -> dict[str, str]:
        """Nothing else decides."""
        return {}

    def give(self, variant: str, folder: Path) -> None:
        """It needs no other files than every boot has."""

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Name the variant; the workload defines it."""
        points = () if self.figure.has_all_points else self.figure.workload.points
        return [
            *("sh", "-c", LET_WAIT, "sh"),
            f"{GUEST_PROJECT}/{GUEST_PROGRAM}",
            "bench",
            f"{GUEST_WORK}/workload.toml",
            *("--device", device.kind.node),
            *("--destroy-data", Path(device.kind.node).name),
            *("--variant", variant),
            *(f"--point={point}" for point in points),
            *(f"--set={key}={value}" for key, value in self.figure.settings.items()),
            *("--out", RECORD),
        ]

    def tidy(self, folder: Path) -> None:
        """It leaves little."""


@dataclass(frozen=True)
class ApplicationLoad:
    """A real program, under `steady with`."""

    figure: Figure
    application: Application
    prepared: Prepared
    timeout_s: float = TIMEOUT_S
    programs: tuple[str, ...] = (GUEST_PROGRAM,)
    card_image: str = CARD_IMAGE

    def identity(self) -> dict[str, str]:
        """The programs and their arguments."""
        return {"application": self.prepared.sha256}

    def give(self, variant: str, folder: Path) -> None:
        """Copy the card's image and whatever else `run` needs."""
        give(self.prepared, folder)

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Run it with the variant's knobs."""
        workload = self.figure.workload
        knobs = workload.variant(variant).knobs
        return [
            *(f"{GUEST_PROJECT}/{GUEST_PROGRAM}", "with", "--device", device.kind.node),
            *(f"--knob={key}={value}" for key, value in knobs.items()),
            *(f"--class={source}" for source in CLASSES),
            *("--variant", variant, "--out", RECORD, "--"),
            f"{GUEST_PROJECT}/{self.application.folder.relative_to(PROJECT)}/run",
            *(str(self.application.events), str(workload.seed), self.application.background),
        ]

    def tidy(self, folder: Path) -> None:
        """Remove the copies."""
        take_back(self.prepared, folder)


@dataclass(frozen=True)
class RecordingLoad:
    """`steady record`, or a recipe, on a new file system, in a script under `steady with`."""

    figure: Figure
    recording: Recording
    timeout_s: float = RECORDING_TIMEOUT_S
    programs: tuple[str, ...] = (GUEST_PROGRAM, WHOLE_PROGRAM, RECIPE_PROGRAM)
    card_image: None = None

    def identity(self) -> dict[str, str]:
        """The spec's part of the script is in the workload; this is the rest."""
        scripts = "".join(self._script(variant.name) for variant in self.figure.workload.variants)
        return {"recording": hashlib.sha256(scripts.encode()).hexdigest()}

    def give(self, variant: str, folder: Path) -> None:
        """Write the variant's script."""
        (folder / SCRIPT).write_text(self._script(variant), encoding="utf-8")

    def command(self, device: DeviceSpec, variant: str) -> list[str]:
        """Run the variant's script with the device's own settings."""
        return [
            *(f"{GUEST_PROJECT}/{GUEST_PROGRAM}", "with", "--device", device.kind.node),
            *(f"--class={source}" for source in classes_of(self.recording)),
            *("--variant", variant, "--out", RECORD, "--", "sh", f"{GUEST_WORK}/{SCRIPT}"),
        ]

    def tidy(self, folder: Path) -> None:
        """It leaves little."""

    def _script(self, variant: str) -> str:
        chosen = self.figure.workload.variant(variant)
        program = WHOLE_PROGRAM if chosen.recipe == POOL else RECIPE_PROGRAM
        program = f"{GUEST_PROJECT}/{program}"
        return recording_script(
            self.recording, program, chosen.recipe, chosen.arguments, chosen.place
        )
