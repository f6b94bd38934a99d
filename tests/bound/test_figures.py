# SPDX-License-Identifier: MIT OR Apache-2.0
"""The committed figures of real-time streams keep the bounds that `steady bound` computes."""

import csv
from pathlib import Path

import pytest
from steady_lab.figures.spec import load_figure
from steady_lab.paths import PROJECT
from steady_lab.search.judge import bounds
from steady_lab.search.sets import COMMAND_US, toml

RECORDS = PROJECT / "docs" / "results" / "records"
CARD = PROJECT / "experiments" / "devices" / "foresee-ncemad9d-usb.toml"
PAGE = PROJECT / "docs" / "reference" / "steady-bound.md"
SPLIT_KIB = {"k2-whole": 0, "k2-split64": 64, "k2-split16": 16, "k2-split4": 4}
DECLARED_BLOCK_US = 440
PERIODS_US = {"every 10 ms": 10_000, "every 33 ms": 33_000, "every 100 ms": 100_000}
FIGURES = {
    "streams": ("read", "read"),
    "streams-writes-read-next-to-write": ("read", "write"),
    "streams-writes-write-next-to-read": ("write", "read"),
    "streams-writes-write-next-to-write": ("write", "write"),
}


def longest(figure: str) -> dict[tuple[str, str], int]:
    """(variant, point) -> ns, of real-time."""
    with (RECORDS / f"{figure}.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["variant"], row["point"]): int(row["max_ns"])
            for row in csv.DictReader(file)
            if row["class"] == "rt"
        }


def bound_ns(
    work: Path, op: str, background_op: str, knobs: dict[str, int], period_us: int
) -> int | None:
    task = {"name": "rt", "op": op, "kib": 64, "level": 0, "period_us": period_us}
    tasks = {
        "schema": "steadyio.tasks/1",
        "name": "stream",
        "k2": {
            "inflight_max": 1,
            "max_sectors_kb": 512,
            "nr_requests": 256,
        }
        | knobs,
        "host": {"command_us": COMMAND_US},
        "background": {"op": background_op, "kib": 512},
        "task": [task | {"jitter_us": 200, "cpu_us": COMMAND_US}],
    }
    (work / "stream.tasks.toml").write_text(toml(tasks), encoding="utf-8")
    (found,) = bounds(CARD, work / "stream.tasks.toml")
    return int(found["job"]["bound_ns"]) if found["job"] else None


@pytest.mark.parametrize("figure", FIGURES)
def test_the_streams_of_the_figures_keep_their_bounds(figure: str, work: Path) -> None:
    seen = longest(figure)
    compared = 0
    for variant, split_kib in SPLIT_KIB.items():
        for point, period_us in PERIODS_US.items():
            bound = bound_ns(work, *FIGURES[figure], {"split_kib": split_kib}, period_us)
            if (variant, point) in seen and bound is not None:
                assert seen[variant, point] <= bound, f"{figure} {variant} {point}"
                compared += 1
    assert compared >= len(SPLIT_KIB) - 1


def test_the_page_shows_the_bounds_of_the_stream_of_the_readme(work: Path) -> None:
    seen, page = longest("every-10-ms"), PAGE.read_text(encoding="utf-8")
    for variant, split_kib in SPLIT_KIB.items():
        bound = bound_ns(work, "read", "read", {"split_kib": split_kib}, PERIODS_US["every 10 ms"])
        assert bound is not None
        longest_ns = seen[variant, "every 10 ms"]
        row = f"| {split_kib or 'off'} | {bound / 1e6:.2f} | {longest_ns / 1e6:.2f} |"
        assert row in page.splitlines(), row


@pytest.mark.parametrize("variant", ["k2-split4", "k2-declared"])
def test_the_headline_shows_the_bound_and_keeps_it(variant: str, work: Path) -> None:
    figure = load_figure("every-10-ms")
    knobs = {"split_kib": 4} if variant == "k2-split4" else {"rt_block_us": DECLARED_BLOCK_US}
    bound = bound_ns(work, "read", "read", knobs, PERIODS_US["every 10 ms"])
    assert bound is not None
    assert f"{bound / 1e6:.2f}" == f"{figure.headline_bound_ms[variant]:.2f}"
    assert longest("every-10-ms")[variant, "every 10 ms"] <= bound
