# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run figures: boot every variant that is missing, merge the records, evaluate the claims."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.devices.spec import DeviceSpec, load_device
from steady_lab.errors import LabError
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.checks import evaluate
from steady_lab.figures.executor import Executor, LocalPool
from steady_lab.figures.figure_boot import (
    FigureBoot,
    finished_record,
    plan_boots,
)
from steady_lab.figures.results import Sources, merge, write_result
from steady_lab.figures.spec import Figure, load_figures
from steady_lab.figures.table import check_lines
from steady_lab.kernels.modules import source_digest
from steady_lab.kernels.source import RELEASES, release_folder
from steady_lab.paths import BUILD
from steady_lab.targets.target import Target, modules_of
from steady_lab.targets.uml import uml

JOBS_DEFAULT = 2


@dataclass(frozen=True)
class RunOrder:
    """What to run: figures by reference; `only` one variant; `fresh`, even if finished.

    `release`: of the kernel. `make_target`: gives what runs that release, `make_executor`
    what runs so many boots at a time.
    """

    figures: Sequence[str]
    build: Path = BUILD
    release: str = RELEASES[0]
    jobs: int = JOBS_DEFAULT
    only: str | None = None
    fresh: bool = False
    make_target: Callable[[str], Target] = uml
    make_executor: Callable[[int], Executor] = LocalPool

    @property
    def folder(self) -> Path:
        """Where work and results of this order's release are."""
        return release_folder(self.build, self.release)


@dataclass(frozen=True)
class PlannedFigure:
    """A figure, the device of each of its variants, and its boots in spec order."""

    figure: Figure
    devices: dict[str, DeviceSpec]
    boots: list[FigureBoot]


def run_figures(order: RunOrder) -> bool:
    """Boot what is missing, write the results, print the checks; True if all of them hold.

    Raises LabError when a spec is wrong or a boot fails, KeyboardInterrupt on Ctrl-C; what
    was finished until then is kept.
    """
    figures = [figure for name in order.figures for figure in load_figures(name)]
    _refuse_unknown_variant(figures, order.only)
    devices = [_devices_of(figure) for figure in figures]
    target = order.make_target(order.release)
    planned = [
        PlannedFigure(figure, of, plan_boots(figure, of, target, order.folder / "work"))
        for figure, of in zip(figures, devices, strict=True)
    ]
    with _sole_user(order.folder / "work"):
        _boot_what_is_missing(planned, order)
        held = [_conclude(item, target, order.folder / "results") for item in planned]
    return all(held)


def _devices_of(figure: Figure) -> dict[str, DeviceSpec]:
    names = [variant.name for variant in figure.workload.variants]
    return {name: load_device(figure.device_file_of(name)) for name in names}


def _device_document(item: PlannedFigure) -> dict[str, Any]:
    """Return the spec of the figure's device, or of each variant's where they differ."""
    if not item.figure.variant_device_files:
        return load_device(item.figure.device_file).raw
    return {"variants": {name: device.raw for name, device in item.devices.items()}}


def _sources(item: PlannedFigure, target: Target) -> Sources:
    modules = [module for device in item.devices.values() for module in modules_of(device)]
    return Sources(target.config_sha256, source_digest(dict.fromkeys(modules)))


@contextmanager
def _sole_user(work: Path) -> Iterator[None]:
    """Keep other runs out of the work folders; raises LabError when one is in there."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError(f"another steady-lab run is at work in {work}") from error
        yield


def _refuse_unknown_variant(figures: list[Figure], only: str | None) -> None:
    names = sorted({variant.name for figure in figures for variant in figure.workload.variants})
    if only is not None and only not in names:
        raise LabError(f"--only {only}: must be one of {', '.join(names)}")


def _boot_what_is_missing(planned: list[PlannedFigure], order: RunOrder) -> None:
    chosen = [
        boot
        for item in planned
        for boot in item.boots
        if order.only is None or boot.variant == order.only
    ]
    missing = [boot for boot in chosen if order.fresh or finished_record(boot) is None]
    kept = len(chosen) - len(missing)
    if kept:
        print(f"{kept} of {len(chosen)} boots are finished and kept", file=sys.stderr)
    _run_all(missing, order.make_executor(order.jobs))


def _run_all(boots: list[FigureBoot], executor: Executor) -> None:
    """Longest first, where last time's duration is known; unknown ones before all others."""
    ordered = sorted(boots, key=lambda boot: -(boot.expected_wall_s() or float("inf")))
    board = BootBoard(boots, executor.jobs, sys.stderr)
    try:
        executor.run(ordered, board)
    finally:
        board.close()


def _conclude(item: PlannedFigure, target: Target, results: Path) -> bool:
    """Merge, write and check one figure; False if a claim does not hold.

    With boots of other variants missing (after --only) there is nothing to conclude yet.
    """
    records = [finished_record(boot) for boot in item.boots]
    missing = [
        boot.variant for boot, record in zip(item.boots, records, strict=True) if record is None
    ]
    if missing:
        print(f"{item.figure.name}: no result yet, still to boot: {', '.join(missing)}")
        return True
    complete = [record for record in records if record is not None]
    text = merge(item.figure, _device_document(item), complete, _sources(item, target))
    measured = write_result(item.figure, text, results)
    checked = evaluate(item.figure.checks, measured)
    print(f"{item.figure.name}: {results / item.figure.name}.json and .csv")
    for line in check_lines(checked):
        print(f"  {line}")
    for unmet in {str(need): None for record in complete for need in record["unmet"]}:
        print(f"  unmet requirement: {unmet}")
    return all(result.passed for result in checked)
