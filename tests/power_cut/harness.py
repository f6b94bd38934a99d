# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cut the power under a recorder, at many moments of one boot, and return what is left.

One boot records, with the card's write log on. For each cut the card is rebuilt from the log; a
second boot attaches one such card after the other, mounts, recovers, and copies the files.
The cuts of that recovery come from its own log in the same way.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steady_lab.devices.power_cut.card import Cut, CutCard, copy_sparse
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import WriteLog
from steady_lab.devices.spec import load_device
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest, BootResult
from steady_lab.targets.uml import uml

DEVICE = PROJECT / "experiments" / "devices" / "test-cut.toml"
# Cards at a time on the host's disk; each is sparse, some ten MiB.
BATCH = 50
LOG = "card.log"


@dataclass(frozen=True)
class Scenario:
    """What runs in the guest, in shell, in the work folder; /run/mnt/kept is on the card."""

    record: str
    recover: str = ":"
    options: str = "noatime"  # of the mount while recording
    release: str = "6.1"
    flavour: str = "base"
    environment: dict[str, str] = field(default_factory=dict)

    def boot(self, script: str, work: Path, log: str | None, life: int, **more: str) -> BootResult:
        """Run a script of this folder in a guest; raises AssertionError if it fails.

        `life` counts the boots that one card goes through: each has random numbers of its own.
        """
        result = uml(self.release, self.flavour).boot(
            BootRequest(
                command=["sh", f"{GUEST_PROJECT}/tests/power_cut/{script}"],
                work=work,
                device=DEVICE if log else None,
                write_log=log,
                random_seed=life,
                environment={
                    "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
                    "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
                    "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
                    **self.environment,
                    **more,
                },
                timeout_s=600,
            )
        )
        assert result.exit_status == 0, result.output[-3000:]
        return result


@dataclass(frozen=True)
class Recovered:
    """The result of one cut."""

    cut: Cut
    folder: Path
    failed: str  # the step that failed, or nothing

    @property
    def log(self) -> Path:
        """The write log of the recovery."""
        return self.folder.with_suffix(".log")


def record(scenario: Scenario, work: Path) -> WriteLog:
    """Boot and record; return the card's write log."""
    scenario.boot(
        "record.sh",
        work,
        LOG,
        life=0,
        POWER_CUT_RECORD=scenario.record,
        POWER_CUT_OPTIONS=scenario.options,
    )
    return WriteLog(work / LOG)


def recover_all(
    scenario: Scenario, work: Path, log: WriteLog, cuts: Sequence[Cut]
) -> Iterator[Recovered]:
    """Yield what is left after each cut; its folder is gone when the next but BATCH is yielded."""
    card = CutCard(log, work / "stable.img")
    for first in range(0, len(cuts), BATCH):
        folder = _empty(work / "cuts")
        batch = {f"{first + number:04}": cut for number, cut in enumerate(cuts[first:][:BATCH])}
        for name, cut in batch.items():
            card.write_cut(cut, folder / f"{name}.img")
        _recover_in(folder, scenario, life=1)
        for name, cut in batch.items():
            yield Recovered(cut, folder / name, _failed(folder, name))
    card.close()


def recover_twice(
    scenario: Scenario, work: Path, log: WriteLog, cuts: Sequence[Cut], again: int
) -> Iterator[Recovered]:
    """Cut each recovery, too, at `again` moments, and yield what the second recovery leaves.

    The cut that is yielded is the first one: that is what was durable, and must still be.
    """
    first, second = _empty(work / "first"), _empty(work / "second")
    card = CutCard(log, work / "stable.img")
    for number, cut in enumerate(cuts):
        card.write_cut(cut, first / f"{number:04}.img")
        copy_sparse(first / f"{number:04}.img", first / f"{number:04}.base")
    card.close()
    _recover_in(first, scenario, life=1)
    batch = {}
    for number, cut in enumerate(cuts):
        recovery = WriteLog(first / f"{number:04}.log")
        card = CutCard(recovery, work / "stable.img", first / f"{number:04}.base")
        for moment, then in enumerate(plan_cuts(recovery, again, number, 0, 2**64)):
            name = f"{number:04}-{moment:02}"
            batch[name] = cut
            card.write_cut(then, second / f"{name}.img")
        card.close()
    _recover_in(second, scenario, life=2)
    for name, cut in batch.items():
        yield Recovered(cut, second / name, _failed(second, name))


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _recover_in(folder: Path, scenario: Scenario, life: int) -> None:
    parameters = " ".join(load_device(DEVICE).module_params())
    scenario.boot(
        "recover.sh",
        folder,
        None,
        life,
        POWER_CUT_CARD=parameters,
        POWER_CUT_RECOVER=scenario.recover,
    )


def _failed(folder: Path, name: str) -> str:
    """Return the step that failed; the file system must be whole after recovery, too."""
    noted = folder / name / "failed"
    if noted.exists():
        return noted.read_text().strip()
    checked = subprocess.run(
        ["e2fsck", "-fn", str(folder / f"{name}.img")], capture_output=True, text=True, check=False
    )
    return "" if checked.returncode == 0 else f"e2fsck: {checked.stdout}"
