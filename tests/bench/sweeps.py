# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a sweep costs on workers of Dask: short boots, here and there, in turns; and empty tasks.

  build/venv/bin/python tests/bench/sweeps.py [--boots 200] [--tasks 20000]

Both run as many boots at a time, on this machine's own CPUs, so only figures of one run can be
compared. Called when docs/reference/sweeps.md is written.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from distributed import Client
from steady_lab.errors import LabError
from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.executor import Executor, LocalPool
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.sweeps.dask_executor import DaskExecutor, SentParts, remote_job_of, unpacked
from steady_lab.targets.target import BootError, BootRequest, BootResult
from steady_lab.targets.uml import Uml, uml

sys.path.insert(0, str(Path(__file__).parents[1] / "sweeps"))
from cluster import Cluster, cluster  # noqa: E402

WORKERS = 2
TURN_BOOTS = 10
DEVICE = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"


@dataclass(frozen=True)
class ShortBoot:
    """A guest with an emulated card that reads little of it."""

    number: int
    target: Uml
    request: BootRequest
    replay: str = "none"

    @property
    def label(self) -> str:
        return f"boot {self.number}"

    @property
    def key(self) -> str:
        return self.request.work.name

    def expected_wall_s(self) -> None:
        return None

    def prepare(self) -> None:
        self.request.work.mkdir(parents=True)

    def keep(self, outcome: BootResult | BootError) -> None:
        if isinstance(outcome, BootError) or outcome.exit_status:
            raise LabError(str(outcome))


def boots(target: Uml, folder: Path, first: int, count: int) -> list[ShortBoot]:
    command = [f"{GUEST_PROJECT}/build/bin/steady", "--version"]
    return [
        ShortBoot(number, target, BootRequest(command, folder / f"{number}", DEVICE))
        for number in range(first, first + count)
    ]


def seconds(executor: Executor, made: list[ShortBoot]) -> float:
    start_s = time.monotonic()
    executor.run(made, BootBoard(made, executor.jobs, StringIO()))
    return time.monotonic() - start_s


def compare(address: str, folder: Path, count: int) -> None:
    target, there, here = uml(), DaskExecutor(address), LocalPool(WORKERS)
    on_each_side(address, target, folder, 100)
    shipping_s = seconds(there, boots(target, folder / "first", 0, WORKERS * 2))
    print(f"first {WORKERS * 2} boots, with all that is sent: {shipping_s:.1f} s")
    here_s = there_s = 0.0
    for first in range(0, count, TURN_BOOTS):
        here_s += seconds(here, boots(target, folder / "here", first, TURN_BOOTS))
        there_s += seconds(there, boots(target, folder / "there", first, TURN_BOOTS))
        done = first + TURN_BOOTS
        print(
            f"{done} boots: local pool {here_s:.1f} s, Dask {there_s:.1f} s, "
            f"{there_s / here_s:.3f} times",
            flush=True,
        )
    there.close()


def unpacking_s(archives: Iterable[bytes], folder: Path) -> float:
    """CPU time to unpack archives into an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEADYIO_CACHE", str(folder))
        start_s = time.process_time()
        for archive in archives:
            unpacked(archive)
        return time.process_time() - start_s


def on_each_side(address: str, target: Uml, folder: Path, count: int) -> None:
    """The client's work for each boot without Dask's own part, and a worker's once."""
    with Client(address) as client:
        made = boots(target, folder / "jobs", 0, count + 1)
        made[0].prepare()
        first, _ = remote_job_of(made[0])
        archives = client.gather(list(SentParts(client).of(first.guest, ()).values()))
        start_s = time.process_time()
        for boot in made[1:]:
            boot.prepare()
            pickle.dumps(remote_job_of(boot))
        each_ms = (time.process_time() - start_s) / count * 1e3
    print(f"the client's CPU per boot: {each_ms:.1f} ms")
    print(f"a worker's to unpack what it gets: {unpacking_s(archives, folder / 'new'):.1f} s")


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _nothing(number: int) -> int:
    return number


def empty_tasks(made: Cluster, count: int) -> None:
    with Client(made.address) as client:
        client.gather(client.map(_nothing, range(100), pure=False))
        start_s, start_cpu_s = time.monotonic(), cpu_s(made.pid)
        client.gather(client.map(_nothing, range(count), pure=False))
        each_us = (time.monotonic() - start_s) / count * 1e6
        cpu_us = (cpu_s(made.pid) - start_cpu_s) / count * 1e6
    print(
        f"{count} empty tasks on {WORKERS} workers: {each_us:.0f} us each, "
        f"of the scheduler's CPU {cpu_us:.0f} us"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boots", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=20_000)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sweeps-"))
    try:
        with cluster(folder / "dask", WORKERS) as made:
            empty_tasks(made, arguments.tasks)
            compare(made.address, folder, arguments.boots)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
