# SPDX-License-Identifier: MIT OR Apache-2.0
"""The SSD model beside what the paper on K2 and SSDs prints: two tables for docs/devices.md.

The model alone, without a kernel (lab/simulate/ssd_load.c, built by make -C tests/devices check).
By hand, some seconds: build/venv/bin/python tests/devices/ssd_paper.py [--write]
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ssd_load import OPERATIONS, show, simulated
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import PROJECT

COMMAND = "tests/devices/ssd_paper.py --write"
PAGE = PROJECT / "docs" / "devices.md"
NO_BOUND = 0
MB_S, P999_US = "MB/s", "p99.9 us"


@dataclass(frozen=True)
class Case:
    """A figure of the paper, a scheduler (K2-`bound`, or none), and what is printed of them."""

    figure: str
    state: str
    operation: str
    bound: int
    mb_s: str = ""  # as printed; some are ranges
    p999_us: int | None = None


PRINTED = (
    Case("4a", "half full", "sequential read", NO_BOUND, "720", 1237),
    Case("4a", "half full", "sequential read", 1, "70", 370),
    Case("4b", "half full", "random read", NO_BOUND, "566", 3251),
    Case("4b", "half full", "random read", 2, "", 197),
    Case("4b", "half full", "random read", 1, "44", 217),
    Case("5a", "half full", "sequential write", NO_BOUND, "430", 3131),
    Case("5a", "half full", "sequential write", 64, "419-438"),
    Case("5a", "half full", "sequential write", 2, "419-438", 960),
    Case("5a", "half full", "sequential write", 1, "303", 471),
    Case("5b", "half full", "random write", NO_BOUND, "299", 3848),
    Case("5b", "half full", "random write", 64, "297-302", 3471),
    Case("5b", "half full", "random write", 1, "277", 1732),
    Case("8a", "full", "sequential write", NO_BOUND, "256-288", 3247),
    Case("8a", "full", "sequential write", 1, "256-288", 1485),
    Case("8b", "full", "random write", NO_BOUND, "", 3259),
    Case("8b", "full", "random write", 1, "", 1689),
)

# What section 5 says of drives that are half full, as operation, bound, metric, relation, number.
SAID = (
    ("sequential read", 8, P999_US, "<=", 618.5),
    ("sequential read", 16, P999_US, ">", 618.5),
    ("random read", 32, P999_US, "<=", 1625.5),
    ("random read", 64, P999_US, ">", 1625.5),
    ("sequential read", 8, MB_S, "<", 360),
    ("sequential read", 16, MB_S, ">=", 360),
    ("random read", 4, MB_S, "<", 283),
    ("random read", 8, MB_S, ">=", 283),
    ("sequential write", 8, P999_US, "<=", 1565.5),
    ("sequential write", 16, P999_US, ">", 1565.5),
    ("sequential write", 1, MB_S, ">=", 215),
    ("sequential write", 1, MB_S, "<", 344),
)
RELATIONS = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
}


def result(state: str, operation: str, bound: int) -> dict[str, float]:
    found = simulated(state, *OPERATIONS[operation], f"bound={bound}")
    return {MB_S: float(found["mb_s"]), P999_US: float(found["p999_us"])}


def error(printed: str, found: float) -> str:
    """Say by how much the model misses; nothing for what is inside a printed range."""
    low, _, high = printed.partition("-")
    nearest = min(max(found, float(low)), float(high or low))
    return f"{(found / nearest - 1) * 100:+.0f} %"


def printed_lines() -> Iterable[str]:
    yield "| figure | drive | operation | scheduler | MB/s | model | | p99.9 us | model | |"
    yield "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for case in PRINTED:
        found = result(case.state, case.operation, case.bound)
        p999 = "" if case.p999_us is None else str(case.p999_us)
        cells = (
            case.figure,
            case.state,
            case.operation,
            f"K2-{case.bound}" if case.bound else "none",
            case.mb_s,
            f"{found[MB_S]:.0f}",
            error(case.mb_s, found[MB_S]) if case.mb_s else "",
            p999,
            f"{found[P999_US]:.0f}",
            error(p999, found[P999_US]) if p999 else "",
        )
        yield f"| {' | '.join(cells)} |"


def said_lines() -> Iterable[str]:
    yield "| operation | scheduler | the paper says | model | holds |"
    yield "| --- | --- | --- | ---: | --- |"
    for operation, bound, metric, relation, number in SAID:
        found = result("half full", operation, bound)[metric]
        holds = "yes" if RELATIONS[relation](found, float(number)) else "**no**"
        yield f"| {operation} | K2-{bound} | {metric} {relation} {number} | {found:.0f} | {holds} |"


def run_all() -> None:
    """Fill the cache, two at a time."""
    cases = {(case.state, case.operation, case.bound) for case in PRINTED}
    cases |= {("half full", operation, bound) for operation, bound, *_ in SAID}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda case: result(*case), sorted(cases)))


def written_page(page: str) -> str:
    """Return the page with the tables written anew."""
    run_all()
    return with_part(page, "ssd-paper", COMMAND, tables())


def tables() -> str:
    return "\n".join([*printed_lines(), "", *said_lines(), ""])


if __name__ == "__main__":
    run_all()
    show(PAGE, tables(), written_page)
