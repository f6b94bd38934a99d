# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs task sets on an emulated card, many in one boot, and compares with their bounds."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from releases import LAB_RELEASE, guest_kernel
from steady_lab.paths import GUEST_PROJECT
from steady_lab.search.judge import bound_document, bound_of_an_io, bounds
from steady_lab.search.sets import TaskSet, random_card, random_set, toml
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

BENCH = """{steady} bench {name}.workload.toml --device=/dev/mmcblk0 --destroy-data=mmcblk0 \\
    --out={name}.record.json >{name}.out 2>&1 || {{ cat {name}.out; exit 1; }}
"""
# The shell is in a cgroup of its own, which owns the tasks, as the benchmark has several processes.
DECLARED = """
queue=/sys/block/mmcblk0/queue
echo k2 >$queue/scheduler
echo '{device_limits}' >$queue/iosched/device_limits
{steady} with --device=/dev/mmcblk0 {declarations} -- sh -c '
    {bench}
    cat /sys/block/mmcblk0/queue/iosched/rt_declared >{name}.declared' || exit 1
"""
OWN_CGROUP = """
mkdir -p /run/cgroup && mount -t cgroup2 cgroup2 /run/cgroup && mkdir /run/cgroup/tasks
echo 0 >/run/cgroup/tasks/cgroup.procs || exit 1
"""
STEADY = f"{GUEST_PROJECT}/build/bin/steady-guest"


@dataclass(frozen=True)
class Observed:
    """A task's bound, None if there is none, and the longest that was seen."""

    set_name: str
    task: dict[str, Any]
    bound: dict[str, int] | None
    max_ns: int

    def __str__(self) -> str:
        return f"{self.set_name} {self.task}: {self.max_ns} ns seen, bound {self.bound}"

    def exceeds(self, without: str | None = None) -> bool:
        """Whether more was seen than the bound, or than it would be without one of its terms."""
        if self.bound is None:
            return False
        return self.max_ns > self.bound["bound_ns"] - (self.bound[without] if without else 0)


def median_ratio(seen: list[Observed]) -> float:
    """The ratio of bounds to the longest observed times."""
    return statistics.median(o.bound["bound_ns"] / o.max_ns for o in seen if o.bound)


def run_random(
    work: Path,
    card_seed: int,
    set_seeds: range,
    make: Callable[[dict[str, Any], int], TaskSet] = random_set,
) -> list[Observed]:
    """One boot: a random card, and these sets on it one after the other."""
    card = random_card(card_seed)
    path = work / "card.toml"
    path.write_text(toml(card), encoding="utf-8")
    sets = [make(card, seed) for seed in set_seeds]
    run(work, path, sets)
    return [seen for made in sets for seen in observed(work, path, made)]


def run(work: Path, card: Path, sets: list[TaskSet], release: str = LAB_RELEASE) -> None:
    """Leave a record of each set on the card in the work folder."""
    for made in sets:
        (work / f"{made.name}.tasks.toml").write_text(toml(made.tasks), encoding="utf-8")
        (work / f"{made.name}.workload.toml").write_text(toml(made.workload), encoding="utf-8")
    commands = [command(work, card, made) for made in sets]
    script = "\n".join([OWN_CGROUP, *commands])
    result = guest_kernel(release).boot(
        BootRequest(["sh", "-c", script], work, card, timeout_s=3600)
    )
    assert result.exit_status == 0, result.output[-3000:]


def results_of(work: Path, card: Path, workload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Run a workload with one point, and return the results of its classes by variant."""
    name = workload["name"]
    (work / f"{name}.workload.toml").write_text(toml(workload), encoding="utf-8")
    script = BENCH.format(steady=STEADY, name=name)
    result = uml(LAB_RELEASE).boot(BootRequest(["sh", "-c", script], work, card))
    assert result.exit_status == 0, result.output[-3000:]
    record = json.loads((work / f"{name}.record.json").read_text(encoding="utf-8"))
    return {found["variant"]: found["classes"] for found in record["results"]}


def command(work: Path, card: Path, made: TaskSet) -> str:
    """Lines of a shell that run a set, with its tasks declared if it says so."""
    bench = BENCH.format(steady=STEADY, name=made.name)
    if "rt_block_us" not in made.tasks["k2"]:
        return bench
    document = bound_document(card, work / f"{made.name}.tasks.toml")
    words = (f"{task['declare']} owner=cgroup" for task in document["tasks"])
    return DECLARED.format(
        steady=STEADY,
        device_limits=document["device_limits"],
        declarations=" ".join(f"--declare={word.replace(' ', ',')}" for word in words),
        bench=bench,
        name=made.name,
    )


def jobs(work: Path, made: TaskSet) -> dict[str, Any]:
    """Results by job, from the record that run() left."""
    record = json.loads((work / f"{made.name}.record.json").read_text(encoding="utf-8"))
    (result,) = record["results"]
    found: dict[str, Any] = result["jobs"]
    return found


def observed(work: Path, card: Path, made: TaskSet) -> list[Observed]:
    """The observations of each task, with the bounds that the times of `card` give."""
    found = []
    for task, bound in zip(
        made.tasks["task"], bounds(card, work / f"{made.name}.tasks.toml"), strict=True
    ):
        job = jobs(work, made)[task["name"]]
        assert job["errors"] == 0
        if job["count"]:
            longest_ns = job["latency_ns"]["max"]
            found.append(Observed(made.name, task, bound_of_an_io(task, bound), longest_ns))
    return found


def declared_counts(work: Path, name: str) -> list[dict[str, int]]:
    """What k2 counted of each declared task of a set that has run."""
    lines = (work / f"{name}.declared").read_text(encoding="utf-8").splitlines()
    words = [re.findall(r"(\w+)=(\d+)\b", line) for line in lines]
    return [{key: int(count) for key, count in pairs} for pairs in words]
