# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real-time threads with all kinds of arrivals next to background on the modelled card of the
K2-split paper, without a kernel (lab/simulate/stream_load.c)."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steady_lab.devices.spec import load_device
from steady_lab.paths import BUILD, PROJECT

PROGRAM = BUILD / "simulate" / "stream_load"
CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
# Knobs of the module, not times of the card.
NOT_THE_MODEL = {"capacity_mib", "seed"}
SEEDS = range(1, 9)
EVERY_10_MS = "period_us=10000 jitter_us=200"


@dataclass(frozen=True)
class Load:
    """Real-time threads next to reads of 512 KiB, and what must hold; MiB/s and ms."""

    threads: tuple[str, ...]
    background_min: float
    p99_max: float
    seconds: int = 60
    words: tuple[str, ...] = ()


# 64 KiB takes 0.90 ms alone, 1.11 ms in a slow episode; the background alone gets 85 MiB/s.
LOADS = {
    "every 10 ms": Load((EVERY_10_MS,), 72, 1.16),
    "every 5 ms": Load(("period_us=5000 jitter_us=200",), 61, 1.2),
    "every 10 ms +-1": Load(("period_us=10000 jitter_us=1000",), 70.8, 1.34),
    "every 100 ms": Load(("period_us=100000 jitter_us=200",), 83, 1.16),
    "three periods": Load(
        (EVERY_10_MS, "period_us=33000 jitter_us=200", "period_us=100000 jitter_us=200"), 68, 1.73
    ),
    "three periods, one process": Load(
        (
            f"{EVERY_10_MS} process=1",
            "period_us=33000 jitter_us=200 process=1",
            "period_us=100000 jitter_us=200 process=1",
        ),
        68,
        1.73,
    ),
    "five streams": Load(("period_us=20000 jitter_us=200",) * 5, 56, 1.16),
    "bursts of 4": Load(("period_us=20000 jitter_us=200 burst=4",), 66, 1.16),
    "sporadic": Load(("poisson_us=5000 min_us=5000",), 59, 1.34),
    "Poisson, 10 ms": Load(("poisson_us=10000",), 50, 1.34),
    "Poisson, 1 s": Load(("poisson_us=1000000",), 55, 1.4, 600),
    "on 1 s, off 2 s": Load((f"{EVERY_10_MS} on_ms=1000 off_ms=2000",), 75, 1.2),
    "25 ms late once": Load((f"{EVERY_10_MS} late_us=25000 late_every_ms=60000",), 72, 1.16, 100),
    "25 ms late every 10 s": Load((f"{EVERY_10_MS} late_us=25000 late_every_ms=10000",), 72, 1.2),
    "25 ms late every 2 s": Load((f"{EVERY_10_MS} late_us=25000 late_every_ms=2000",), 72, 1.2),
    "12 ms late every 2 s": Load((f"{EVERY_10_MS} late_us=12000 late_every_ms=2000",), 72, 1.2),
    "late, leaves places out": Load(
        (f"{EVERY_10_MS} late_us=25000 late_every_ms=2000 late_skips=1",), 72, 1.23
    ),
    "10 ms, then 12": Load((f"{EVERY_10_MS} period2_us=12000 period2_at_ms=30000",), 73, 1.16),
    "10 ms, then 7": Load((f"{EVERY_10_MS} period2_us=7000 period2_at_ms=30000",), 69, 1.16),
    "every 5 s": Load(("period_us=5000000 jitter_us=2000",), 80, 1.4, 600),
    "threads of 200 ms": Load(
        ("period_us=10000 jitter_us=100 kib=16 life_ms=200 dead_us=20000",), 75, 0.8
    ),
    "threads of 25 ms": Load(
        ("period_us=10000 jitter_us=100 kib=16 life_ms=25 dead_us=20000",), 77, 0.8
    ),
    "a thread per request": Load((f"{EVERY_10_MS} threads=100000",), 72, 1.16),
    "a pool of 100 threads": Load((f"{EVERY_10_MS} threads=100",), 72, 1.16),
}

UNCUT = ("bg_write=1", "write_base_ns=19000000", "write_per_kib_ns=0", "write_pause_kib=0")

# For which nothing more is asked than that it gets no worse: ablations.py.
MORE_LOADS = {
    "every 33 ms": Load(("period_us=33000 jitter_us=200",), 0, 0),
    "back to back": Load(("think_us=1",), 0, 0),
    "9 ms after the last": Load(("think_us=9000 think_jitter_us=200",), 0, 0),
    "drifts by 5 %": Load((f"{EVERY_10_MS} drift_ppm=50000",), 0, 0),
    "every 15 s": Load(("period_us=15000000 jitter_us=2000",), 0, 0, 600),
    "every 40 s": Load(("period_us=40000000 jitter_us=2000",), 0, 0, 1200),
    "programs of 1.5 s": Load(
        ("period_us=1000000 jitter_us=100 life_ms=1500 dead_us=20000",), 0, 0
    ),
    "levels 0 and 6": Load(
        ("poisson_us=20000 kib=4 level=0", "poisson_us=20000 kib=64 level=6"), 0, 0
    ),
    "three levels": Load(tuple(f"poisson_us=30000 kib=12 level={i}" for i in (0, 2, 6)), 0, 0),
    "writes of 19 ms": Load(("period_us=20000 jitter_us=200",), 0, 0, 60, UNCUT),
    "writes of 19 ms, Poisson": Load(("poisson_us=20000",), 0, 0, 60, UNCUT),
    "writes": Load((EVERY_10_MS,), 0, 0, 60, ("bg_write=1",)),
    "writes next to writes": Load((f"{EVERY_10_MS} write=1",), 0, 0, 60, ("bg_write=1",)),
    "the first 2 s, 9 ms after the last": Load(
        ("think_us=9000 late_us=25000 late_every_ms=60000",), 0, 0, 2, ("warm_ms=0",)
    ),
    "stops after 20 s": Load((f"{EVERY_10_MS} stop_ms=20000",), 0, 0),
    "one of three threads stops": Load(
        (
            f"{EVERY_10_MS} process=1",
            "period_us=33000 jitter_us=200 process=1 stop_ms=15000",
            "period_us=100000 jitter_us=200 process=1",
        ),
        0,
        0,
    ),
    "eight streams": Load(("period_us=20000 jitter_us=400 kib=4",) * 8, 0, 0),
    "twenty streams": Load(("period_us=50000 jitter_us=1000 kib=4",) * 20, 0, 0),
    "more work after 30 s": Load(
        (f"{EVERY_10_MS} process=1", "poisson_us=30000 process=1 start_ms=30000"), 0, 0
    ),
}


def card_words() -> list[str]:
    """Return the card's times as the programs of lab/simulate take them."""
    values = load_device(CARD).values
    return [f"{name}={value}" for name, value in values.items() if name not in NOT_THE_MODEL]


def run(threads: tuple[str, ...], *words: str, program: Path = PROGRAM) -> dict[str, Any]:
    """Return what stream_load prints; the first 3 s, in which k2 learns, are not measured."""
    parts = [word for thread in threads for word in ("thread", *thread.split())]
    done = subprocess.run(
        [program, *card_words(), "host_us=4", "warm_ms=3000", *words, *parts],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def p99_ms(results: list[dict[str, Any]]) -> float:
    """The value of the slowest thread, on average over the seeds."""
    return mean([max(thread["p99_ms"] for thread in result["threads"]) for result in results])
