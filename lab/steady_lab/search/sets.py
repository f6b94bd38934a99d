# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random cards and task sets, each as `steady bound` and as `steady bench` read them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

# A set runs for this many periods of its slowest task.
PERIODS = 150
SIZES_KIB = (4, 16, 64, 128, 256)
# Values of k2's knobs, unless a test sets them.
SETTINGS = {
    "inflight_max": (1, 1, 2),
    "split_kib": (0, 4, 16, 64),
    "background_wait_ms_max": (0, 0, 20),
}
# The host's clock steps per command, docs/devices.md ("The timing model").
COMMAND_US = 4


@dataclass(frozen=True)
class TaskSet:
    """`tasks` is for the analysis, `workload` runs the same tasks."""

    name: str
    tasks: dict[str, Any]
    workload: dict[str, Any]


def toml(table: dict[str, Any]) -> str:
    """Text of a TOML file with tables one deep and arrays of such tables; JSON's words fit."""
    plain = [f"{key} = {inline(value)}" for key, value in table.items()]
    return "\n".join(plain) + "\n"


def inline(value: Any) -> str:
    """Text of a value in a TOML file."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {inline(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def random_card(seed: int) -> dict[str, Any]:
    """A card, with or without slow episodes, pauses, cache and command queue."""
    pick = random.Random(f"card {seed}")

    def cost(base_us: int, per_kib_ns: int) -> dict[str, int]:
        base_ns = 1000 * pick.randint(base_us // 2, base_us * 2)
        return {
            "base_ns": base_ns,
            "per_kib_ns": pick.randint(per_kib_ns // 2, per_kib_ns * 2),
            "jump_ns": pick.choice((0, base_ns // 2)),
            "slow_ns": pick.choice((0, base_ns)),
            "jitter_ns": pick.choice((0, base_ns // 20)),
        }

    card: dict[str, Any] = {
        "schema": "steadyio.device/1",
        "name": f"random-{seed}",
        "title": "A random card",
        "source": "Invented for the test of the bound.",
        "card": {"product": "RANDOM", "capacity_mib": 4096, "seed": seed},
        "read": cost(100, 8000),
        "write": cost(250, 12000),
        "slow": {"period_us": 1_000_000, "length_us": 50_000},
    }
    if pick.random() < 0.4:
        pause = {"pause_kib": pick.choice((1024, 4096)), "pause_ns": pick.randint(0, 2_000_000)}
        card["write"] |= pause
    if pick.random() < 0.25:
        card["cache"] = {"kib": pick.choice((512, 2048)), "base_ns": 20_000, "per_kib_ns": 4_000}
    if pick.random() < 0.3:
        card["queue"] = {"depth": 16}
        card["card"] |= {"units": 2, "stripe_kib": 512}
    return card


def command_us(card: dict[str, Any], op: str, kib: int) -> float:
    """The time of a usual command, used only to choose loads."""
    cost = card[op]
    return float(cost["base_ns"] + cost["jump_ns"] + kib * cost["per_kib_ns"]) / 1000


def random_set(card: dict[str, Any], seed: int, *, in_phase: bool = False) -> TaskSet:
    """One to four real-time tasks next to a background that takes all that they leave.
    `in_phase`: all jobs begin when one of the slowest does."""
    tasks, background, knobs = random_tasks(card, seed)
    if in_phase:
        harmonic(tasks)
    return task_set(f"{card['name']}-set-{seed}", seed, tasks, background, knobs, seconds(tasks))


def seconds(tasks: list[dict[str, Any]]) -> int:
    """Return for how long a set runs."""
    return 1 + max(int(task["period_us"]) for task in tasks) * PERIODS // 1_000_000


def harmonic(tasks: list[dict[str, Any]]) -> None:
    """Lengthen each period to a multiple of all that are shorter: the worst phases come often."""
    shortest_us = 1
    for task in sorted(tasks, key=lambda task: int(task["period_us"])):
        task["period_us"] = -(-task["period_us"] // shortest_us) * shortest_us
        shortest_us = task["period_us"]


def random_tasks(
    card: dict[str, Any], seed: int
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, int]]:
    """Return tasks, background and knobs."""
    pick = random.Random(f"set {card['name']} {seed}")
    count = pick.randint(1, 4)
    share = pick.uniform(0.2, 0.6) / count
    background: dict[str, Any] = {
        "op": pick.choice(("read", "write")),
        "kib": pick.choice((128, 512)),
    }
    knobs = {
        "inflight_max": pick.choice((1, 1, 2, 3) if "queue" in card else (1, 1, 1, 2)),
        "split_kib": pick.choice(SETTINGS["split_kib"]),
        "background_wait_ms_max": pick.choice(SETTINGS["background_wait_ms_max"]),
    }
    piece_kib = knobs["split_kib"] or background["kib"]
    piece_us = knobs["inflight_max"] * command_us(card, background["op"], piece_kib)
    tasks: list[dict[str, Any]] = []
    for index in range(count):
        op, kib = pick.choice(("read", "write")), pick.choice(SIZES_KIB)
        ios = pick.choice((1, 1, 1, 2))
        period_us = int(ios * (command_us(card, op, kib) + piece_us) / share) + pick.randint(0, 500)
        task = {"name": f"task{index}", "op": op, "kib": kib, "level": pick.randint(0, 7)}
        jitter_us = pick.choice((0, period_us // 10))
        tasks.append(task | {"ios": ios, "period_us": period_us, "jitter_us": jitter_us})
    return tasks, background, knobs


def durable_set(card: dict[str, Any], seed: int) -> TaskSet:
    """A random set of which one or two tasks write with O_DSYNC, for cards with a cache: there,
    such tasks are of level 0, no others are, and one command is in flight."""
    pick = random.Random(f"durable {card['name']} {seed}")
    tasks, background, knobs = random_tasks(card, seed)
    knobs["inflight_max"] = 1
    flush_us = int(card["cache"]["kib"] * card["write"]["per_kib_ns"] / 1000)
    durable = pick.choice((1, 1, 2))
    for index, task in enumerate(tasks):
        task["period_us"] += (4 if index < durable else 2) * durable * flush_us
        if index < durable:
            task |= {"op": "write", "kib": pick.choice((4, 16, 64)), "level": 0, "durable": True}
        else:
            task["level"] = max(1, task["level"])
    name = f"{card['name']}-durable-{seed}"
    return task_set(name, seed, tasks, background, knobs, seconds(tasks))


def declared_set(card: dict[str, Any], seed: int, *, in_phase: bool = False) -> TaskSet:
    """A random set whose tasks are declared, each on a level of its own. Lower levels may block
    them for some times what 4 KiB takes at most."""
    pick = random.Random(f"declared {card['name']} {seed}")
    tasks, background, knobs = random_tasks(card, seed)
    if in_phase:
        harmonic(tasks)
    for task, level in zip(tasks, pick.sample(range(8), len(tasks)), strict=True):
        task["level"] = level
    block_us = least_us(card) * pick.choice((1.2, 2, 3, 4))
    knobs |= {"split_kib": 0, "rt_block_us": int(block_us)}
    name = f"{card['name']}-declared-{seed}"
    return task_set(name, seed, tasks, background, knobs, seconds(tasks))


def least_us(card: dict[str, Any]) -> int:
    """The longest time of a command of 4 KiB, rounded up."""

    def of(op: str) -> int:
        cost = card[op]
        once = (cost.get(f"{name}_ns", 0) for name in ("base", "jump", "slow", "jitter"))
        return int(sum(once) + 4 * cost["per_kib_ns"]) // 1000

    return 10 + COMMAND_US + max(of("read"), of("write"))


def one_task(op: str, kib: int, background_op: str, split_kib: int) -> TaskSet:
    """A task with some thousand I/Os, so that its p99 is known well."""
    task = {"name": "task", "op": op, "kib": kib, "level": 0, "ios": 1}
    tasks = [task | {"period_us": 11_000, "jitter_us": 1_000}]
    knobs = {"inflight_max": 1, "split_kib": split_kib, "background_wait_ms_max": 0}
    name = f"{op}-{kib}-next-to-{background_op}-{split_kib}"
    return task_set(name, 1, tasks, {"op": background_op, "kib": 512}, knobs, 20)


def task_set(
    name: str,
    seed: int,
    tasks: list[dict[str, Any]],
    background: dict[str, Any],
    knobs: dict[str, int],
    length_s: int,
) -> TaskSet:
    """Return tasks and background for the analysis, and as a workload under these knobs."""
    queue = {"max_sectors_kb": 512, "nr_requests": 64}
    jobs = [job_of(task) for task in tasks]
    greedy = {"name": "bg", "class": "bg", "ioprio": "idle", "data": "zero", "depth": 8}
    jobs.append(greedy | {"op": f"rand{background['op']}", "bs_kib": background["kib"]})
    iosched = {f"iosched/{name}": value for name, value in ({"rt_block_us": 0} | knobs).items()}
    set_to = {"scheduler": "k2"} | {f"queue/{name}": value for name, value in queue.items()}
    # Two random requests can be neighbours.
    set_to["queue/nomerges"] = 2
    return TaskSet(
        name=name,
        tasks={
            "schema": "steadyio.tasks/1",
            "name": name,
            "k2": knobs | queue,
            "host": {"command_us": COMMAND_US},
            "background": background | {"merges": False, "durable": False},
            "task": [task | {"cpu_us": COMMAND_US} for task in tasks],
        },
        workload={
            "schema": "steadyio.workload/1",
            "name": name,
            "seed": seed,
            "each_job": True,
            "length": {"seconds": length_s},
            "job": jobs,
            "variant": [{"name": "k2", "knobs": set_to | iosched}],
        },
    )


def job_of(task: dict[str, Any]) -> dict[str, Any]:
    """Return the job of a workload that runs a task."""
    sync = {"sync": "dsync"} if task.get("durable") else {}
    return sync | {
        "name": task["name"],
        "class": "rt",
        "op": f"rand{task['op']}",
        "bs_kib": task["kib"],
        "ioprio": f"rt/{task['level']}",
        "data": "zero",
        "arrivals": "periodic",
        "gap_us": task["period_us"],
        "jitter_us": task["jitter_us"],
        "burst": task["ios"],
    }
