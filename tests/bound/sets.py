# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random cards and task sets, each as `steady bound` and as `steady bench` read them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

# A set runs for so many periods of its slowest task.
PERIODS = 150
SIZES_KIB = (4, 16, 64, 128, 256)
# The host's clock steps per command, docs/devices.md ("The timing model").
COMMAND_US = 4


@dataclass(frozen=True)
class TaskSet:
    """`tasks` is for the analysis, `workload` does what it describes."""

    name: str
    tasks: dict[str, Any]
    workload: dict[str, Any]


def toml(table: dict[str, Any]) -> str:
    """Text of a TOML file with tables one deep and arrays of such tables; JSON's words fit."""
    plain = [f"{key} = {inline(value)}" for key, value in table.items()]
    return "\n".join(plain) + "\n"


def inline(value: Any) -> str:
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
    """Of a usual command; only loads are made of it."""
    cost = card[op]
    return float(cost["base_ns"] + cost["jump_ns"] + kib * cost["per_kib_ns"]) / 1000


def random_set(card: dict[str, Any], seed: int) -> TaskSet:
    """One to four real-time tasks beside a background that takes all that they leave."""
    pick = random.Random(f"set {card['name']} {seed}")
    count = pick.randint(1, 4)
    share = pick.uniform(0.2, 0.6) / count
    background_kib, background_op = pick.choice((128, 512)), pick.choice(("read", "write"))
    inflight_max = pick.choice((1, 1, 2, 3)) if "queue" in card else pick.choice((1, 1, 1, 2))
    split_kib = pick.choice((0, 4, 16, 64))
    wait_ms = pick.choice((0, 0, 20))
    piece_us = inflight_max * command_us(card, background_op, split_kib or background_kib)
    tasks: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for index in range(count):
        op, kib = pick.choice(("read", "write")), pick.choice(SIZES_KIB)
        ios = pick.choice((1, 1, 1, 2))
        period_us = int(ios * (command_us(card, op, kib) + piece_us) / share) + pick.randint(0, 500)
        jitter_us = pick.choice((0, period_us // 10))
        level = pick.randint(0, 7)
        task = {"name": f"task{index}", "op": op, "kib": kib, "level": level, "ios": ios}
        tasks.append(task | {"period_us": period_us, "jitter_us": jitter_us, "cpu_us": COMMAND_US})
        jobs.append(
            {
                "name": f"task{index}",
                "class": "rt",
                "op": f"rand{op}",
                "bs_kib": kib,
                "ioprio": f"rt/{level}",
                "data": "zero",
                "arrivals": "periodic",
                "gap_us": period_us,
                "jitter_us": jitter_us,
                "burst": ios,
            }
        )
    jobs.append(
        {
            "name": "bg",
            "class": "bg",
            "op": f"rand{background_op}",
            "bs_kib": background_kib,
            "ioprio": "idle",
            "data": "zero",
            "depth": 8,
        }
    )
    name = f"{card['name']}-set-{seed}"
    knobs = {
        "scheduler": "k2",
        "queue/nr_requests": 64,
        "queue/max_sectors_kb": 512,
        "iosched/inflight_max": inflight_max,
        "iosched/split_kib": split_kib,
        "iosched/rt_block_us": 0,
        "iosched/background_wait_ms_max": wait_ms,
    }
    longest_us = max(task["period_us"] for task in tasks)
    return TaskSet(
        name=name,
        tasks={
            "schema": "steadyio.tasks/1",
            "name": name,
            "k2": {
                "inflight_max": inflight_max,
                "split_kib": split_kib,
                "background_wait_ms_max": wait_ms,
                "max_sectors_kb": 512,
                "nr_requests": 64,
            },
            "host": {"command_us": COMMAND_US},
            "background": {
                "op": background_op,
                "kib": background_kib,
                "merges": False,
                "durable": False,
            },
            "task": tasks,
        },
        workload={
            "schema": "steadyio.workload/1",
            "name": name,
            "seed": seed,
            "each_job": True,
            "length": {"seconds": 1 + longest_us * PERIODS // 1_000_000},
            "job": jobs,
            "variant": [{"name": "k2", "knobs": knobs}],
        },
    )
