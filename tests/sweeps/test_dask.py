# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps on workers of Dask: the same bytes as here, whatever becomes of a worker."""

from __future__ import annotations

import random
import shutil
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import pytest
import zstandard
from cluster import Cluster, cluster, wait_until
from steady_lab.commands.executors import executor_on
from steady_lab.devices.spec import load_device
from steady_lab.errors import LabError
from steady_lab.figures.boot import BootFailedError
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.figure_boot import FigureBoot, plan_boots
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import load_figure
from steady_lab.kernels.build import LabKernel
from steady_lab.sweeps.dask_executor import names_below, pack, unpack, unpacked
from steady_lab.targets.target import BootError, BootResult
from steady_lab.targets.uml import Uml
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

boots_on_dask = pytest.mark.nightly("a boot on a worker of Dask that differs from one here")

FOUR_BOOTS = Path(__file__).parent / "four-boots.toml"
FOREVER = ["sh", "-c", "while sleep 1; do :; done"]


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("dask")
    try:
        with cluster(folder, workers=2) as made:
            yield made
    finally:
        shutil.rmtree(folder)


class InterruptedBoard(BootBoard):
    """Presses Ctrl-C once a guest runs."""

    def __init__(self, boots: list[FigureBoot], dask: Cluster) -> None:
        super().__init__(boots, 1, StringIO())
        self._dask = dask

    def redraw(self) -> None:
        if any(worker.boots() for worker in self._dask.workers):
            raise KeyboardInterrupt


def boot_of(kernel: LabKernel, work: Path, command: list[str]) -> FigureBoot:
    figure = load_figure(FOUR_BOOTS)
    devices = {v.name: load_device(figure.device_file) for v in figure.workload.variants}
    boot = plan_boots(figure, devices, Uml(kernel), work)[0]
    return replace(boot, request=replace(boot.request, command=command), key=f"key of {command}")


def on_dask(dask: Cluster, boot: FigureBoot, board: BootBoard | None = None) -> None:
    with executor_on(dask.address) as make_executor:
        make_executor(1).run([boot], board or BootBoard([boot], 1, StringIO()))


@boots_on_dask
def test_a_boot_that_fails_says_how_to_replay_it(
    dask: Cluster, base_kernel: LabKernel, work: Path
) -> None:
    said = "four-boots/none failed: .*status 1\n(.*\n)*replay: .* --only none"
    with pytest.raises(BootFailedError, match=said):
        on_dask(dask, boot_of(base_kernel, work, ["false"]))


@boots_on_dask
def test_a_large_input_arrives_and_its_changes_stay_there(
    dask: Cluster, base_kernel: LabKernel, work: Path
) -> None:
    boot = boot_of(base_kernel, work, ["sh", "-c", "cp large copy; echo more >>large"])
    large = random.Random(1).randbytes(3 << 20)

    class Given(FigureBoot):
        def prepare(self) -> None:
            super().prepare()
            (self.folder / "large").write_bytes(large)

        def keep(self, outcome: BootResult | BootError) -> None:
            assert isinstance(outcome, BootResult), outcome
            assert outcome.exit_status == 0, outcome.output

    given = Given(**{field.name: getattr(boot, field.name) for field in fields(boot)})
    on_dask(dask, given)
    assert (given.folder / "copy").read_bytes() == large
    assert (given.folder / "large").read_bytes() == large


@boots_on_dask
def test_ctrl_c_ends_the_guests(dask: Cluster, base_kernel: LabKernel, work: Path) -> None:
    boot = boot_of(base_kernel, work, FOREVER)
    with pytest.raises(KeyboardInterrupt):
        on_dask(dask, boot, InterruptedBoard([boot], dask))
    wait_until("no guest runs", lambda: not any(worker.boots() for worker in dask.workers))


@boots_on_dask
def test_as_many_boots_at_a_time_as_threads(dask: Cluster) -> None:
    with executor_on(dask.address) as make_executor:
        assert make_executor(7).jobs == 2


# The last, for it leaves one worker.
@boots_on_dask
def test_a_killed_worker_changes_no_byte(
    dask: Cluster, base_kernel: LabKernel, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    lost = dask.workers[0]
    assert run_figures(RunOrder([str(FOUR_BOOTS)], here))

    def kill() -> None:
        wait_until("a guest runs on the first worker", lost.boots)
        lost.process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with executor_on(dask.address) as make_executor:
        assert run_figures(RunOrder([str(FOUR_BOOTS)], there, make_executor=make_executor))
    killer.join()
    assert lost.boots(), "it was not killed in the middle of a boot"
    for name in ("four-boots.json", "four-boots.csv"):
        assert (here / "results" / name).read_bytes() == (there / "results" / name).read_bytes()


def test_no_scheduler_is_an_error_that_says_how_to_start_one() -> None:
    with (
        pytest.raises(LabError, match=r"no Dask scheduler answers .*`dask scheduler`"),
        executor_on("tcp://127.0.0.1:1"),
    ):
        pass


def test_what_was_packed_is_unpacked(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    (source / "a" / "b").mkdir(parents=True)
    (source / "a" / "program").write_text("runs")
    (source / "a" / "program").chmod(0o755)
    (source / "a" / "link").symlink_to("/etc/nowhere")
    names = names_below(source)
    assert pack(source, names) == pack(source, names)
    unpack(pack(source, names), place)
    assert names_below(place) == names == ["a", "a/b", "a/link", "a/program"]
    assert (place / "a" / "program").stat().st_mode & 0o777 == 0o755


def test_a_cut_archive_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYIO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "file").write_bytes(random.Random(1).randbytes(1 << 20))
    with pytest.raises((tarfile.TarError, zstandard.ZstdError)):
        unpacked(pack(tmp_path, ["file"])[:-20])
    bundles = tmp_path / "cache" / "bundles"
    assert not [path for path in bundles.iterdir() if not path.name.endswith(".lock")]
