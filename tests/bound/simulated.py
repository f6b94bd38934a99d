# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs task sets on the flash model with k2's policy, without a kernel (lab/simulate/task_set.c),
and compares with their bounds: thousands of jobs a second, with a background that looks for the
worst."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steady_lab.devices.spec import load_device
from steady_lab.paths import BUILD, PROJECT
from steady_lab.search.judge import bound_document
from steady_lab.search.sets import COMMAND_US, command_us, least_us, toml

PROGRAM = BUILD / "simulate" / "task_set"
KNOBS = ("inflight_max", "split_kib", "background_wait_ms_max", "max_sectors_kb")
TASK_KEYS = ("kib", "level", "period_us", "jitter_us", "ios", "at_once", "cpu_us")
# Where k2 sees writes with FUA.
KERNEL = "6.12"


@dataclass(frozen=True)
class Simulated:
    """A task's bounds, None if there are none, and the longest job and batch of I/Os."""

    name: str
    task: dict[str, Any]
    found: dict[str, Any]
    job_ns_max: int
    io_ns_max: int
    # For a declared task: requests that k2's own fault blocked for longer than stated.
    own_faults: int

    @property
    def ratio(self) -> float | None:
        """The ratio of the bound to the longest job."""
        job = self.found["job"]
        return job["bound_ns"] / self.job_ns_max if job else None

    def exceeds(self, without: str | None = None) -> bool:
        """Whether a job took longer than its bound, or than that without one of its terms."""
        job = self.found["job"]
        if not job:
            return False
        if self.job_ns_max > job["bound_ns"] - (job[without] if without else 0):
            return True
        is_late = job["bound_ns"] > 1000 * (self.task["period_us"] - 2 * self.task["jitter_us"])
        io_ns = self.found["io"]["bound_ns"] - (self.found["io"][without] if without else 0)
        return not is_late and self.io_ns_max > io_ns


@cache
def build() -> None:
    """Compile the simulation."""
    subprocess.run(["make", "-s", "-C", PROJECT / "lab" / "simulate"], check=True)


def limit_words(document: dict[str, Any]) -> Iterator[str]:
    """Of a device whose tasks are declared."""
    limits = (document["device_limits"] or "").split()
    for op, base_ns, per_kib_ns in zip(limits[::3], limits[1::3], limits[2::3], strict=True):
        yield from (f"{op}_limit_ns={base_ns}", f"{op}_limit_per_kib_ns={per_kib_ns}")


def declared_words(bound: dict[str, Any]) -> Iterator[str]:
    """Of a declared task: what it states that the others do not, and its jitter."""
    words = (bound["declare"] or "").split()
    yield from (word for word in words if word.startswith(("block_us=", "think_us=")))
    yield from (f"declared_{word}" for word in words if word.startswith("jitter_us="))


def words_of(card: Path, tasks: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    """Arguments of the program. `document`: what `steady bound` says of the set."""
    yield from limit_words(document)
    yield from (f"{name}={value}" for name, value in load_device(card).values.items())
    knobs = tasks["k2"]
    yield from (f"{name}={knobs[name]}" for name in KNOBS if name in knobs)
    yield f"host_us={tasks['host']['command_us']}"
    yield f"fua_bypasses={int(tasks['host'].get('kernel') == '6.1')}"
    if background := tasks.get("background"):
        merged_kib = knobs["max_sectors_kb"] if background.get("merges", True) else 0
        yield f"bg_kib={max(background['kib'], merged_kib)}"
        yield f"bg_read={int(background['op'] != 'write')}"
        yield f"bg_write={int(background['op'] != 'read')}"
        yield f"bg_durable={int(background.get('durable', True))}"
        yield f"bg_flush_us={background.get('flush_distance_us_min', 0)}"
        yield f"bg_discard_kib={background.get('discard_kib', 0)}"
    for task, bound in zip(tasks["task"], document["tasks"], strict=True):
        yield "task"
        yield f"write={int(task['op'] == 'write')}"
        yield f"durable={int(task.get('durable', False))}"
        yield from (f"{key}={task[key]}" for key in TASK_KEYS if key in task)
        yield from declared_words(bound)


def background_mib_s(work: Path, card: Path, tasks: dict[str, Any]) -> tuple[float, float]:
    """Return the throughput of a background that is always there, next to strictly periodic tasks,
    and the part that `steady bound` expects it to lose."""
    build()
    (work / "tasks.toml").write_text(toml(tasks), encoding="utf-8")
    document = bound_document(card, work / "tasks.toml")
    words = ["greedy=1", "trials=4", "periods=500", *words_of(card, tasks, document)]
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["background_mib_s"]), float(document["background_loss"])


def run(
    work: Path,
    card: dict[str, Any],
    tasks: dict[str, Any],
    *,
    seed: int,
    trials: int = 20,
    more: tuple[str, ...] = (),
) -> list[Simulated]:
    """Simulate a set, and return what each task took next to its bounds. `more`: arguments for the
    last task, which replace its own."""
    build()
    card_path, tasks_path = work / "card.toml", work / "tasks.toml"
    card_path.write_text(toml(card), encoding="utf-8")
    tasks_path.write_text(toml(tasks), encoding="utf-8")
    document = bound_document(card_path, tasks_path)
    words = [*words_of(card_path, tasks, document), *more]
    words = [f"load_seed={seed}", f"trials={trials}", *words]
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)["tasks"]
    rows = zip(tasks["task"], document["tasks"], seen, strict=True)
    return [
        Simulated(
            tasks["name"],
            task,
            bound,
            longest["job_ns_max"],
            longest["io_ns_max"],
            longest["over"][0],
        )
        for task, bound, longest in rows
    ]


def declared(card: dict[str, Any], tasks: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the set with its tasks declared, blocked for several times what 4 KiB can take."""
    pick = random.Random(f"declared {tasks['name']} {seed}")
    block_us = least_us(card) - COMMAND_US
    knobs = {"split_kib": 0, "rt_block_us": int(block_us * pick.choice((1.2, 2, 3, 4)))}
    background = dict(tasks["background"])
    background.pop("discard_kib", None)
    host = tasks["host"] | {"kernel": KERNEL}
    return tasks | {"k2": tasks["k2"] | knobs, "background": background, "host": host}


def hostile_card(seed: int) -> dict[str, Any]:
    """A card with small caches, slow flushes, long pauses, long slow states, several units."""
    pick = random.Random(f"hostile card {seed}")

    def cost(low_us: int, high_us: int, per_kib_ns: int) -> dict[str, int]:
        base_ns = 1000 * pick.randint(low_us, high_us)
        return {
            "base_ns": base_ns,
            "per_kib_ns": pick.randint(per_kib_ns // 4, per_kib_ns * 3),
            "jump_ns": pick.choice((0, base_ns // 2)),
            "slow_ns": pick.choice((0, base_ns, 3 * base_ns)),
            "jitter_ns": pick.choice((0, base_ns // 20)),
        }

    card: dict[str, Any] = {
        "schema": "steadyio.device/1",
        "name": f"hostile-{seed}",
        "title": "A random card",
        "source": "Invented for the test of the bound.",
        "card": {"product": "RANDOM", "capacity_mib": 4096, "seed": seed},
        "read": cost(50, 400, 8000),
        "write": cost(100, 1500, 15000),
        "erase": {"base_ns": 1000 * pick.randint(100, 5000)},
    }
    if pick.random() < 0.5:
        card["slow"] = {"period_us": pick.choice((100_000, 1_000_000)), "length_us": 50_000}
    if pick.random() < 0.4:
        kib, ns = pick.choice((64, 256, 1024, 4096)), pick.randint(0, 6_000_000)
        card["write"] |= {"pause_kib": kib, "pause_ns": ns}
    if pick.random() < 0.5:
        kib = pick.choice((16, 64, 128, 512, 2048))
        card["cache"] = {"kib": kib, "base_ns": 20_000, "per_kib_ns": pick.choice((1000, 4000))}
        card["flush"] = {"base_ns": pick.choice((200_000, 3_000_000, 20_000_000))}
    if pick.random() < 0.3:
        card["queue"] = {"depth": 16}
        card["card"] |= {"units": pick.choice((1, 2, 4)), "stripe_kib": pick.choice((16, 64, 512))}
    return card


def hostile_set(card: dict[str, Any], seed: int) -> dict[str, Any]:
    """Up to five tasks, some durable, some rare, next to any background."""
    pick = random.Random(f"hostile set {card['name']} {seed}")
    durable = pick.choice((1, 2)) if "cache" in card and pick.random() < 0.4 else 0
    knobs = {
        "inflight_max": 1 if durable else pick.choice((1, 1, 1, 2, 4)),
        "split_kib": pick.choice((0, 4, 16, 64)),
        "background_wait_ms_max": pick.choice((0, 0, 0, 20)),
        "max_sectors_kb": pick.choice((128, 512)),
        "nr_requests": 1024,
    }
    background: dict[str, Any] = {
        "op": pick.choice(("read", "write", "readwrite")),
        "kib": pick.choice((16, 64, 128, 512)),
        "merges": pick.random() < 0.5,
        "durable": pick.random() < 0.5,
    }
    if not durable and pick.random() < 0.4:
        background["flush_distance_us_min"] = pick.choice((2_000, 8_000, 30_000, 100_000))
    if pick.random() < 0.2:
        background["discard_kib"] = pick.choice((64, 4096))
    piece_kib = knobs["split_kib"] or min(512, knobs["max_sectors_kb"])
    bg_op = "read" if background["op"] == "read" else "write"
    piece_us = knobs["inflight_max"] * command_us(card, bg_op, piece_kib)
    count = pick.randint(1, 5)
    share = pick.uniform(0.2, 0.9) / count
    tasks = [
        _hostile_task(card, pick, index, piece_us / share, share, index < durable, bool(durable))
        for index in range(count)
    ]
    return {
        "schema": "steadyio.tasks/1",
        "name": f"{card['name']}-set-{seed}",
        "k2": knobs,
        "host": {"command_us": COMMAND_US, "kernel": KERNEL},
        "background": background,
        "task": tasks,
    }


def _hostile_task(
    card: dict[str, Any],
    pick: random.Random,
    index: int,
    waits_us: float,
    share: float,
    is_durable: bool,
    others_are: bool,
) -> dict[str, Any]:
    op = "write" if is_durable else pick.choice(("read", "write"))
    kib = pick.choice((4, 16, 64) if is_durable else (4, 16, 32, 64, 128, 256, 512, 1024))
    ios, level = pick.choice((1, 1, 1, 2, 4, 10)), pick.randint(0, 3)
    period_us = int(ios * (command_us(card, op, kib) / share + waits_us)) + pick.randint(0, 500)
    if is_durable:
        drain_ns = card["cache"]["kib"] * card["write"]["per_kib_ns"]
        period_us += 4 * ios * (card["flush"]["base_ns"] + drain_ns) // 1000
    if pick.random() < 0.2:
        period_us *= pick.choice((10, 30))
    period_us = min(period_us, 5_000_000)
    task = {
        "name": f"task{index}",
        "op": op,
        "kib": kib,
        "level": 0 if is_durable else max(level, int(others_are)),
        "ios": ios,
        "period_us": period_us,
        "jitter_us": pick.choice((0, period_us // 10, period_us // 3)),
        "cpu_us": pick.choice((0, 4, 4, 200)),
    }
    if is_durable:
        task["durable"] = True
    elif ios > 1 and pick.random() < 0.4:
        task["at_once"] = pick.randint(2, ios)
    return task
