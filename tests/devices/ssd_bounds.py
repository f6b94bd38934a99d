# SPDX-License-Identifier: MIT OR Apache-2.0
"""K2-1 to K2-64, none and k2's rt_block_us on the SSD model: tables for docs/results/k2-ssd.md.

All four operations on a half full and a full drive, as in Figures 3 to 8 of the paper on K2 and
SSDs, what its two objectives pick, and whether its guidelines hold. No kernel takes part.
By hand, about four minutes: build/venv/bin/python tests/devices/ssd_bounds.py [--write]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from statistics import median

from steady_lab.devices.ssd_load import OPERATIONS, SPEC, build, simulated
from steady_lab.figures.table import TextTable
from steady_lab.pages.recorded_tables import write_tables
from steady_lab.pages.results import RECORDS

RECORD = RECORDS / "ssd-bounds.tables.csv"
PART = "simulated"
TIMES = ("p50_us", "p99_us", "p999_us", "max_us")

NONE = "none"
BOUNDS = (1, 2, 4, 8, 16, 32, 64)
BOUNDS_US = (100, 200, 440, 1000)
SCHEDULERS = {
    NONE: ("bound=0",),
    **{f"K2-{x}": (f"bound={x}",) for x in reversed(BOUNDS)},
    **{f"rt_block_us={us}": ("bound=32", f"rt_block_us={us}") for us in BOUNDS_US},
}
# A pace of writes is found in the first seconds.
WARM_WRITES = "warm_ms=10000"
# A drive that was overwritten at random would make sequential reads random.
FILLED_IN_ORDER = "hot_permille=0"
# The next request comes at any time within 4 ms; k2 has learned the drive.
AT_ANY_TIME = ("jitter_us=2000", "warm_ms=10000")
# Reads of a full drive that was filled in order are those of the half full one.
ANY_TIME = (
    ("half full", "sequential read"),
    ("half full", "random read"),
    ("half full", "sequential write"),
    ("half full", "random write"),
    ("full", "sequential write"),
    ("full", "random write"),
)
# A fixed bound counts as better if it is so by more than this.
WORSE = 1.10
# How long after the last write a drive that was overwritten at random is read.
SINCE_WRITES_MS = (500, 3000, 10000)
# Shares of K2-1's throughput that background writes keep to, whatever the drive says.
FIXED_PACES = (0.80, 0.84, 0.87, 0.90, 0.93, 0.96)
PACED_BOUNDS_US = (100, 200, 380)
# The p99.9 of 5,000 writes scatters: the median of so many seeds.
SEEDS = range(1, 6)
# Real-time reads next to background writes; some drives suspend a program or an erase for a read.
MIXED = ("write=0", "bg_write=1", "sequential=0", "warm_ms=10000")
SUSPENDING = "suspend_ns=50000"
# Smaller differences of a p99.9 of 5,000 are chance: other seeds have them, too.
SCATTER_READS, SCATTER_WRITES = 1.05, 1.3


def result(state: str, operation: str, scheduler: str, *more: str) -> dict[str, float]:
    words = (*OPERATIONS[operation], *SCHEDULERS[scheduler], *more)
    if "write" in operation:
        return simulated(state, *words, WARM_WRITES)
    return simulated(state, *words, *([FILLED_IN_ORDER] if state == "full" else []))


def mb_s(state: str, operation: str, scheduler: str) -> float:
    return result(state, operation, scheduler)["mb_s"]


def tail_us(state: str, operation: str, scheduler: str) -> float:
    return result(state, operation, scheduler)["p999_us"]


def run_all() -> None:
    """Fill the cache, two at a time."""
    build()
    cases = [(s, o, x) for s in SPEC for o in OPERATIONS for x in SCHEDULERS]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda case: result(*case), cases))


def case_table(state: str, operation: str, title: str = "", *more: str) -> TextTable:
    body = []
    for scheduler in SCHEDULERS:
        found = result(state, operation, scheduler, *more)
        body.append([scheduler, f"{found['mb_s']:.0f}", *(f"{found[key]:.0f}" for key in TIMES)])
    header = ["", "MB/s", "p50 us", "p99 us", "p99.9 us", "max us"]
    return TextTable(f"{operation}, {state}{title}", header, body)


def better_bounds(state: str, operation: str, bound: str) -> str:
    """Name the fixed bounds up to 16 that have a shorter tail and more throughput."""
    mine = result(state, operation, bound)
    found = [
        f"K2-{x}"
        for x in BOUNDS
        if x <= 16
        and tail_us(state, operation, f"K2-{x}") < mine["p999_us"]
        and mb_s(state, operation, f"K2-{x}") > mine["mb_s"]
    ]
    return ", ".join(found) or "none"


def bound_table() -> TextTable:
    header = ["operation", "drive", "rt_block_us", "MB/s", "of K2-1's", "p99.9 us", "of K2-1's"]
    body = []
    for operation in OPERATIONS:
        for state in SPEC:
            one = result(state, operation, "K2-1")
            for us in BOUNDS_US:
                found = result(state, operation, f"rt_block_us={us}")
                body.append(
                    [
                        operation,
                        state,
                        str(us),
                        f"{found['mb_s']:.0f}",
                        f"{found['mb_s'] / one['mb_s']:.2f} x",
                        f"{found['p999_us']:.0f}",
                        f"{found['p999_us'] / one['p999_us']:.2f} x",
                        better_bounds(state, operation, f"rt_block_us={us}"),
                    ]
                )
    return TextTable("k2 next to K2-1", [*header, "K2-x, x <= 16, better in both"], body)


def beaten_by(state: str, operation: str, bound: str) -> str:
    """Name the fixed bounds that are better in tail or throughput by WORSE, in the other as good.

    With requests at any time.
    """
    mine = result(state, operation, bound, *AT_ANY_TIME)
    found = []
    for x in BOUNDS:
        fixed = result(state, operation, f"K2-{x}", *AT_ANY_TIME)
        tail = mine["p999_us"] / fixed["p999_us"]
        throughput = fixed["mb_s"] / mine["mb_s"]
        if min(tail, throughput) >= 1 and max(tail, throughput) > WORSE:
            found.append(f"K2-{x}: {throughput:.2f} x the MB/s at {1 / tail:.2f} x the p99.9")
    return "; ".join(found) or "none"


def any_time_table() -> TextTable:
    """Return the check that no fixed bound is better where gaps are unpredictable."""
    with ThreadPoolExecutor(2) as pool:
        cases = [(s, o, x) for s, o in ANY_TIME for x in SCHEDULERS if x != NONE]
        list(pool.map(lambda case: result(*case, *AT_ANY_TIME), cases))
    body = []
    for state, operation in ANY_TIME:
        for us in BOUNDS_US:
            found = result(state, operation, f"rt_block_us={us}", *AT_ANY_TIME)
            numbers = [str(us), f"{found['mb_s']:.0f}", f"{found['p999_us']:.0f}"]
            better = beaten_by(state, operation, f"rt_block_us={us}")
            body.append([operation, state, *numbers, better])
    header = ["operation", "drive", "rt_block_us", "MB/s", "p99.9 us", "better fixed bounds"]
    return TextTable("at any time", header, body)


def collecting_table() -> TextTable:
    body = []
    for since_ms in SINCE_WRITES_MS:
        for scheduler in ("K2-1", "rt_block_us=100"):
            words = (*OPERATIONS["random read"], *SCHEDULERS[scheduler], f"warm_ms={since_ms}")
            found = simulated("full", *words)
            numbers = [f"{found[key]:.0f}" for key in ("mb_s", "p999_us", "max_us")]
            title = f"from {since_ms / 1000:g} s after the writes on"
            body.append([title, scheduler, *numbers])
    header = ["random reads, full drive", "scheduler", "MB/s", "p99.9 us", "max us"]
    return TextTable("reads after writes", header, body)


def mixed_table() -> TextTable:
    body = []
    for state in SPEC:
        schedulers = (NONE, "K2-1", "rt_block_us=100", "rt_block_us=440")
        cases = [("alone", (*SCHEDULERS["K2-1"], "processes=0"))]
        cases += [(x, SCHEDULERS[x]) for x in schedulers]
        cases += [(f"{x}, suspending", (*SCHEDULERS[x], SUSPENDING)) for x in schedulers]
        for name, words in cases:
            found = simulated(state, *MIXED, *words)
            title = "alone" if name == "alone" else "next to random writes"
            numbers = [f"{found[key]:.0f}" for key in ("mb_s", *TIMES)]
            body.append([f"{title}, {state}", name, *numbers])
    header = ["random reads", "scheduler", "MB/s", "p50 us", "p99 us", "p99.9 us", "max us"]
    return TextTable("reads next to writes", header, body)


def median_of_seeds(state: str, operation: str, *words: str) -> tuple[float, float]:
    """Return the medians of MB/s and p99.9 us of writes, after k2 has found its pace."""
    runs = [
        simulated(state, *OPERATIONS[operation], *words, WARM_WRITES, f"load_seed={seed}")
        for seed in SEEDS
    ]
    return median(run["mb_s"] for run in runs), median(run["p999_us"] for run in runs)


def pace_cells(case: tuple[str, str]) -> list[str]:
    state, operation = case
    one_mb_s, one_us = median_of_seeds(state, operation, "bound=1")
    fixed = [f"pace_kb_s={int(share * 1000 * one_mb_s)}" for share in FIXED_PACES]
    words: list[tuple[str, ...]] = [("rt_block_us=200", pace) for pace in fixed]
    words += [(f"rt_block_us={us}",) for us in PACED_BOUNDS_US]
    found = [median_of_seeds(state, operation, "bound=32", *more) for more in words]
    return [f"{mb_s / one_mb_s:.2f} x at {us / one_us:.2f} x" for mb_s, us in found]


def pace_table() -> TextTable:
    """Return fixed paces next to that which k2 learns, one column for each case."""
    cases = [(state, o) for o in OPERATIONS if "write" in o for state in SPEC]
    names = [f"a fixed pace of {100 * share:.0f} %" for share in FIXED_PACES]
    names += [f"k2, rt_block_us={us}" for us in PACED_BOUNDS_US]
    with ThreadPoolExecutor(2) as pool:
        columns = list(pool.map(pace_cells, cases))
    header = ["of K2-1's MB/s at of K2-1's p99.9", *(f"{o}, {s}" for s, o in cases)]
    body = [[name, *cells] for name, *cells in zip(names, *columns, strict=True)]
    return TextTable("paces", header, body)


def tail_candidates(operation: str, alpha: float) -> list[int]:
    """Return for O1 the bounds whose tail is at most alpha of that of none."""
    limit = alpha * tail_us("half full", operation, NONE)
    return [x for x in BOUNDS if tail_us("half full", operation, f"K2-{x}") <= limit]


def throughput_candidates(operation: str, beta: float) -> list[int]:
    """Return for O2 the bounds whose throughput is at least beta of that of none."""
    limit = beta * mb_s("half full", operation, NONE)
    return [x for x in BOUNDS if mb_s("half full", operation, f"K2-{x}") >= limit]


# Section 5: the objective, its limit, and the bounds that the paper finds to keep it.
Candidates = Callable[[str, float], list[int]]
EXAMPLES: tuple[tuple[str, Candidates, str, float, set[int]], ...] = (
    ("O1", tail_candidates, "sequential read", 0.5, {1, 2, 4, 8}),
    ("O1", tail_candidates, "random read", 0.5, {1, 2, 4, 8, 16, 32}),
    ("O2", throughput_candidates, "sequential read", 0.5, {16, 32, 64}),
    ("O2", throughput_candidates, "random read", 0.5, {8, 16, 32, 64}),
    ("O1", tail_candidates, "sequential write", 0.5, {1, 2, 4, 8}),
    ("O2", throughput_candidates, "sequential write", 0.5, {1, 2, 4, 8, 16, 32, 64}),
    ("O2", throughput_candidates, "sequential write", 0.8, {2, 4, 8, 16, 32, 64}),
)


def names(bounds: Iterable[int]) -> str:
    return ", ".join(str(x) for x in sorted(bounds)) or "none"


def example_table() -> TextTable:
    body = []
    for name, candidates, operation, limit, printed in EXAMPLES:
        found = candidates(operation, limit)
        same = "yes" if set(found) == printed else "**no**"
        body.append([name, operation, f"{limit:.0%}", names(printed), names(found), same])
    header = ["objective", "operation", "limit", "the paper's x", "here", "the same"]
    return TextTable("objectives", header, body)


def rises(operation: str, state: str, value: Callable[[str, str, str], float]) -> list[int]:
    """Return the bounds at which a value is larger than at the next larger bound."""
    scatter = SCATTER_READS if "read" in operation else SCATTER_WRITES
    return [
        low
        for low, high in pairwise(BOUNDS)
        if value(state, operation, f"K2-{low}") > scatter * value(state, operation, f"K2-{high}")
    ]


def largest_change(operation: str, value: Callable[[str, str, str], float]) -> float:
    """Return by which factor the full drive differs most from the half full one."""
    ratios = [
        value("full", operation, x) / value("half full", operation, x)
        for x in SCHEDULERS
        if "us" not in x
    ]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def guideline_table() -> TextTable:
    reads = [o for o in OPERATIONS if "read" in o]
    writes = [o for o in OPERATIONS if "write" in o]
    body = []
    for name, operations, said in (
        ("R1", reads, "the occupancy changes neither tail nor throughput of reads"),
        ("W1", writes, "the occupancy changes both for writes"),
    ):
        parts = (
            f"{o}: throughput by up to {largest_change(o, mb_s):.2f} x, "
            f"p99.9 by {largest_change(o, tail_us):.2f} x"
            for o in operations
        )
        body.append([name, said, "; ".join(parts)])
    for name, said, operations, value in (
        ("R2", "throughput falls with x", reads, mb_s),
        ("R3", "the tail falls with x, but not for random reads from 2 to 1", reads, tail_us),
        ("W2", "the tail mostly falls with x", writes, tail_us),
    ):
        parts = (
            f"{o}, {state}: {names(rises(o, state, value))}" for o in operations for state in SPEC
        )
        body.append([name, said, f"x with more than the next larger one: {'; '.join(parts)}"])
    body.append(["W3", "K2-1 alone loses throughput, in some cases", "; ".join(drops(writes))])
    return TextTable("guidelines", ["", "the paper", "here"], body)


def drops(operations: Iterable[str]) -> Iterable[str]:
    for operation in operations:
        for state in SPEC:
            none = mb_s(state, operation, NONE)
            low = [x for x in BOUNDS if mb_s(state, operation, f"K2-{x}") < 0.95 * none]
            yield f"{operation}, {state}: below 95 % of none at x {names(low)}"


def tables() -> list[TextTable]:
    """Return all tables of the record."""
    run_all()
    return [
        any_time_table(),
        bound_table(),
        pace_table(),
        example_table(),
        guideline_table(),
        collecting_table(),
        mixed_table(),
        case_table("half full", "random read", ", at any time", *AT_ANY_TIME),
        *(case_table(state, operation) for operation in OPERATIONS for state in SPEC),
    ]


if __name__ == "__main__":
    made = tables()
    print("\n\n".join(table.text() for table in made))
    if "--write" in sys.argv[1:]:
        write_tables(RECORD, PART, made)
