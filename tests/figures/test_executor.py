# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots run anywhere: in another process they leave the same bytes, and failures are reported."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from steady_lab.devices.spec import load_device
from steady_lab.figures.boot import Boot, BootFailedError, run_boot
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.figure_boot import FigureBoot, plan_boots
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import load_figure
from steady_lab.kernels.build import LabKernel
from steady_lab.paths import PROJECT, cache_dir
from steady_lab.targets.uml import Uml

TINY = Path(__file__).parent / "tiny.toml"
DEVICES = PROJECT / "experiments" / "devices"


@dataclass(frozen=True)
class OtherProcesses:
    """An executor that has nothing in common with this process but the files."""

    jobs: int

    def run(self, boots: Sequence[Boot], board: BootBoard) -> None:
        with ProcessPoolExecutor(self.jobs, mp_context=get_context("spawn")) as pool:
            for boot, wall_s in zip(boots, pool.map(run_boot, boots), strict=True):
                board.finished(boot, wall_s)


def planned(kernel: LabKernel, work: Path, device: str | None = None) -> FigureBoot:
    figure = load_figure(TINY)
    file = DEVICES / f"{device}.toml" if device else figure.device_file
    devices = dict.fromkeys((v.name for v in figure.workload.variants), load_device(file))
    return plan_boots(replace(figure, device_file=file), devices, Uml(kernel), work)[0]


def test_other_processes_leave_the_same_bytes(base_kernel: LabKernel, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert run_figures(RunOrder([str(TINY)], here))
    assert run_figures(RunOrder([str(TINY)], there, make_executor=OtherProcesses))
    for name in ("tiny.json", "tiny.csv"):
        assert (here / "results" / name).read_bytes() == (there / "results" / name).read_bytes()


def test_a_failure_in_another_process_says_how_to_replay(
    base_kernel: LabKernel, work: Path
) -> None:
    boot = planned(base_kernel, work)
    failing = replace(boot, request=replace(boot.request, command=["false"]))
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(BootFailedError, match="tiny/k2 failed: .*\n(.*\n)*replay: .* --only k2"),
    ):
        pool.submit(run_boot, failing).result()


def test_the_key_is_that_of_what_the_guest_is_given(base_kernel: LabKernel, work: Path) -> None:
    boot = planned(base_kernel, work)
    assert boot.key == planned(base_kernel, work / "any, other").key
    assert boot.key != planned(base_kernel, work, "test-plain").key
    identity = repr(boot.target.identity(boot.request))
    for place in (PROJECT, cache_dir(), work):
        assert str(place) not in identity
    for changed in ({"random_seed": 1}, {"command": ["true"]}, {"environment": {"A": "1"}}):
        assert repr(boot.target.identity(replace(boot.request, **changed))) != identity
