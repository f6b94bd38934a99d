# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps on workers of Dask: the same bytes as here, whatever becomes of a worker."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
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
from steady_lab.sweeps.bundle import archive, bundles, names_below, pack, unpack
from steady_lab.targets.target import Part
from steady_lab.targets.uml import Uml
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

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


def test_a_boot_that_fails_says_how_to_replay_it(
    dask: Cluster, base_kernel: LabKernel, work: Path
) -> None:
    said = "four-boots/none failed: .*status 1\n(.*\n)*replay: .* --only none"
    with pytest.raises(BootFailedError, match=said):
        on_dask(dask, boot_of(base_kernel, work, ["false"]))


def test_what_a_machine_has_is_not_shipped_again(
    dask: Cluster, base_kernel: LabKernel, work: Path
) -> None:
    before = [worker.bundles() for worker in dask.workers]
    assert max(map(len, before)) == 3
    with pytest.raises(BootFailedError):
        on_dask(dask, boot_of(base_kernel, work, ["sh", "-c", "exit 2"]))
    after = [worker.bundles() for worker in dask.workers]
    assert all(then.items() <= now.items() for then, now in zip(before, after, strict=True))


def test_ctrl_c_ends_the_guests(dask: Cluster, base_kernel: LabKernel, work: Path) -> None:
    boot = boot_of(base_kernel, work, FOREVER)
    with pytest.raises(KeyboardInterrupt):
        on_dask(dask, boot, InterruptedBoard([boot], dask))
    wait_until("no guest runs", lambda: not any(worker.boots() for worker in dask.workers))


def test_as_many_boots_at_a_time_as_threads(dask: Cluster) -> None:
    with executor_on(dask.address) as make_executor:
        assert make_executor(7).jobs == 2


# The last, for it leaves one worker.
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


def some_part(folder: Path) -> Part:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "program").write_text("runs")
    (folder / "a" / "program").chmod(0o755)
    (folder / "a" / "link").symlink_to("/etc/nowhere")
    return Part("some", folder)


@pytest.fixture
def other_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYIO_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("other_cache")
def test_what_was_packed_is_unpacked(tmp_path: Path) -> None:
    part = some_part(tmp_path / "source")
    place = unpack(pack(part))
    assert names_below(place) == ["a", "a/b", "a/link", "a/program"]
    assert (place / "a" / "program").stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("other_cache")
def test_other_contents_than_named_are_refused(tmp_path: Path) -> None:
    digest = pack(some_part(tmp_path / "source"))
    (tmp_path / "source" / "a" / "program").write_text("damaged")
    other = pack(Part("some", tmp_path / "source"))
    archive(other).rename(archive(digest))
    with pytest.raises(LabError, match=f"its contents hash to {other}"):
        unpack(digest)
    assert not archive(digest).exists()
    assert not (bundles() / digest).exists()


@pytest.mark.usefixtures("other_cache")
def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    digest = pack(some_part(tmp_path / "source"))
    archive(digest).write_bytes(archive(digest).read_bytes()[:-20])
    with pytest.raises(LabError, match="its contents hash to"):
        unpack(digest)
