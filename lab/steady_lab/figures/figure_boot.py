# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot of a figure: a variant at all its points; run once, kept, and found again.

A finished boot is a work folder with record.json and boot.json; the latter holds the key (a
hash of everything that decides the result) and the record's hash. As long as both match,
the boot is never run again; anything else in the folder is discarded and run again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.devices.spec import DeviceSpec
from steady_lab.errors import LabError
from steady_lab.figures.loads import Load, load_of
from steady_lab.figures.results import Record, read_record, write_atomically
from steady_lab.figures.spec import Figure
from steady_lab.hashes import sha256_file
from steady_lab.paths import COMMAND, PROJECT
from steady_lab.root.cargo import built_program
from steady_lab.targets.target import BootError, BootRequest, BootResult, Target

# Bump when a change affects the result of boots but no target's identity.
KEY_VERSION = 4
LOG_LINES_SHOWN = 30


@dataclass(frozen=True)
class FigureBoot:
    """A planned boot; `key` identifies its result. It can be pickled, for another process."""

    figure: Figure
    variant: str
    target: Target
    request: BootRequest
    key: str
    load: Load

    @property
    def folder(self) -> Path:
        """Return its work folder."""
        return self.request.work

    @property
    def label(self) -> str:
        """Return figure/variant, as progress and errors name the boot."""
        return f"{self.figure.name}/{self.variant}"

    @property
    def replay(self) -> str:
        """Return the command that repeats this boot alone, with the same result."""
        return (
            f"{COMMAND} run {self.figure.where} --only {self.variant} --fresh --jobs 1"
            f" --kernel {self.target.release}"
        )

    def expected_wall_s(self) -> float | None:
        """Return how long it took last time, whatever its key was then; None if unknown."""
        wall_s = _read_note(self).get("wall_s")
        return float(wall_s) if isinstance(wall_s, int | float) else None

    def prepare(self) -> None:
        """Write figure, workload and device, and the files that the load needs."""
        folder = self.folder
        _clear(self)
        raw = json.dumps(self.figure.raw, indent=1, sort_keys=True)
        (folder / "figure.json").write_text(raw + "\n", encoding="utf-8")
        shutil.copyfile(self.figure.workload_file, folder / "workload.toml")
        shutil.copyfile(self.figure.device_file_of(self.variant), folder / "device.toml")
        self.load.give(self.variant, folder)

    def keep(self, outcome: BootResult | BootError) -> None:
        """Check the record, and note that it is finished; raises LabError."""
        if isinstance(outcome, BootError):
            raise outcome
        if outcome.exit_status != 0:
            raise LabError(
                f"steady ended with status {outcome.exit_status}\n{_tail(outcome.output)}\n"
                f"kernel log, last lines:\n{_tail(outcome.kernel_log)}"
            )
        record = self.folder / "record.json"
        self.load.tidy(self.folder)
        read_record(record, self.figure, self.variant)
        note = {
            "key": self.key,
            "record_sha256": sha256_file(record),
            "wall_s": round(outcome.wall_s, 1),
        }
        write_atomically(self.folder / "boot.json", json.dumps(note, indent=1) + "\n")


def plan_boots(
    figure: Figure, devices: Mapping[str, DeviceSpec], target: Target, work: Path
) -> list[FigureBoot]:
    """Return the boots of a figure in spec order; `work` holds one folder per figure.

    `devices` has each variant's.

    Prepares what the figure's load needs; raises LabError if that fails.
    """
    boots = []
    load = load_of(figure)
    programs = {name: sha256_file(built_program(PROJECT / name)) for name in load.programs}
    for variant in figure.workload.variants:
        request = BootRequest(
            command=load.command(devices[variant.name], variant.name),
            work=work / figure.name / variant.name,
            device=figure.device_file_of(variant.name),
            card_image=load.card_image,
            modules=("chario",) if variant.is_chardisk else (),
            timeout_s=load.timeout_s,
        )
        decides = {
            "version": KEY_VERSION,
            "target": target.identity(request),
            "programs": programs,
            "workload": figure.workload.raw,
            "variant": variant.name,
            **load.identity(),
        }
        key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        boots.append(FigureBoot(figure, variant.name, target, request, key, load))
    return boots


def finished_record(planned: FigureBoot) -> Record | None:
    """Return the record of a finished boot with this key, None if it has to run."""
    note = _read_note(planned)
    record = planned.folder / "record.json"
    if note.get("key") != planned.key or not record.is_file():
        return None
    if note.get("record_sha256") != sha256_file(record):
        return None
    return read_record(record, planned.figure, planned.variant)


def _clear(planned: FigureBoot) -> None:
    """Empty the folder, so nothing of an earlier boot reaches this one, but keep its duration."""
    wall_s = planned.expected_wall_s()
    shutil.rmtree(planned.folder, ignore_errors=True)
    planned.folder.mkdir(parents=True)
    if wall_s is not None:
        write_atomically(planned.folder / "boot.json", json.dumps({"wall_s": wall_s}) + "\n")


def _read_note(planned: FigureBoot) -> dict[str, Any]:
    try:
        note = json.loads((planned.folder / "boot.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LOG_LINES_SHOWN:])
