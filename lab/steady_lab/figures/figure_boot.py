# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot of a figure: a variant at all its points; run once, kept, and found again.

A finished boot is a work folder with record.json and boot.json; the latter holds the key (a
hash of everything that decides the result) and the record's hash. As long as both match,
the boot is never run again; anything else in the folder is discarded and run anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.boots.boot import BootRequest, boot
from steady_lab.devices.kinds import MODULES
from steady_lab.devices.spec import DeviceSpec
from steady_lab.errors import LabError
from steady_lab.figures.loads import BENCH, Load, load_of
from steady_lab.figures.results import Record, Sources, read_record, sha256_file, write_atomically
from steady_lab.figures.spec import Figure
from steady_lab.kernels.build import LabKernel
from steady_lab.kernels.host import build_preload
from steady_lab.kernels.modules import build_modules, source_digest
from steady_lab.paths import PROJECT
from steady_lab.root.root import guest_root

# They decide the kernel's command line and the guest's init.
BOOTS = PROJECT / "lab/steady_lab/boots"
GUEST_SETUP = (BOOTS / "boot.py", BOOTS / "guest.py")
KEY_VERSION = 2
LOG_LINES_SHOWN = 30


@dataclass(frozen=True)
class Platform:
    """What every boot of this run executes: kernel, modules, bench, and the root with fio."""

    kernel: LabKernel
    sources: Sources
    hashes: dict[str, str]


@dataclass(frozen=True)
class FigureBoot:
    """A planned boot; `folder` is its work folder, `key` identifies its result."""

    figure: Figure
    device: DeviceSpec
    variant: str
    folder: Path
    key: str
    load: Load

    @property
    def label(self) -> str:
        """Return figure/variant, as progress and errors name the boot."""
        return f"{self.figure.name}/{self.variant}"

    @property
    def replay(self) -> str:
        """Return the command that repeats this boot alone, with the same result."""
        return (
            f"build/bin/steady-lab run {self.figure.where} --only {self.variant} --fresh --jobs 1"
        )


def find_platform(kernel: LabKernel) -> Platform:
    """Build the modules and hash what the guest will run; raises LabError if it is missing."""
    bench = PROJECT / BENCH
    if not bench.is_file():
        raise LabError(f"{bench} is missing: run `make setup`")
    files = {"steady": bench, "preload": build_preload(), **build_modules(kernel, MODULES)}
    files |= {path.name: path for path in GUEST_SETUP}
    hashes = {name: sha256_file(path) for name, path in sorted(files.items())}
    hashes["root"] = guest_root().key
    return Platform(kernel, Sources(kernel.config_sha256, source_digest(MODULES)), hashes)


def plan_boots(
    figure: Figure, devices: Mapping[str, DeviceSpec], platform: Platform, work: Path
) -> list[FigureBoot]:
    """Return the boots of a figure in spec order; `work` holds one folder per figure.

    `devices` has each variant's.

    Prepares what the figure's load needs; raises LabError if that fails.
    """
    boots = []
    load = load_of(figure)
    for variant in figure.workload.variants:
        device = devices[variant.name]
        decides = {
            "version": KEY_VERSION,
            "kernel": platform.kernel.key,
            "hashes": platform.hashes,
            "device": [device.kind.module.name, *device.module_params()],
            "workload": figure.workload.raw,
            "variant": variant.name,
            **load.identity(),
        }
        key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        folder = work / figure.name / variant.name
        boots.append(FigureBoot(figure, device, variant.name, folder, key, load))
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


def expected_wall_s(planned: FigureBoot) -> float | None:
    """Return how long this boot took last time, whatever its key was then; None if unknown."""
    wall_s = _read_note(planned).get("wall_s")
    return float(wall_s) if isinstance(wall_s, int | float) else None


def run_boot(planned: FigureBoot, platform: Platform, cancelled: threading.Event) -> float:
    """Boot, bench, check the record and keep it; return the wall time in seconds.

    Raises LabError when kernel or bench fail, and when `cancelled` is set meanwhile.
    """
    folder = planned.folder
    _clear(planned)
    raw = json.dumps(planned.figure.raw, indent=1, sort_keys=True)
    (folder / "figure.json").write_text(raw + "\n", encoding="utf-8")
    shutil.copyfile(planned.figure.workload_file, folder / "workload.toml")
    device_file = planned.figure.device_file_of(planned.variant)
    shutil.copyfile(device_file, folder / "device.toml")
    planned.load.give(planned.variant, folder)
    result = boot(
        BootRequest(
            command=planned.load.command(planned.device, planned.variant),
            work=folder,
            device=device_file,
            card_image=planned.load.card_image,
            kernel=platform.kernel,
            timeout_s=planned.load.timeout_s,
            cancelled=cancelled,
        )
    )
    if result.exit_status != 0:
        raise LabError(
            f"steady ended with status {result.exit_status}\n{_tail(result.output)}\n"
            f"kernel log, last lines:\n{_tail(result.kernel_log)}"
        )
    record = folder / "record.json"
    found = planned.load.finish(planned.variant, folder)
    if found is not None:
        write_atomically(record, json.dumps(found) + "\n")
    read_record(record, planned.figure, planned.variant)
    note = {
        "key": planned.key,
        "record_sha256": sha256_file(record),
        "wall_s": round(result.wall_s, 1),
    }
    write_atomically(folder / "boot.json", json.dumps(note, indent=1) + "\n")
    return result.wall_s


def _clear(planned: FigureBoot) -> None:
    """Empty the folder, so nothing of an earlier boot reaches this one, but keep its duration."""
    wall_s = expected_wall_s(planned)
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
