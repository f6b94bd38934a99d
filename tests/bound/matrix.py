# SPDX-License-Identifier: MIT OR Apache-2.0
r"""The table in docs/reference/steady-probe.md: by how much a probe of each emulated card is wrong.

  PYTHONPATH=tests STEADY_RELEASES="6.1 6.12" \
      build/venv/bin/python tests/bound/matrix.py [--cell TEXT] [CARD...]

Probes each CARD, all without names, in the columns whose names have TEXT, such as "raw 6.12".
Writes what it finds into the page, where other cells stay. The releases are named so that 6.12 runs
its base kernel: with the debug kernel, a raw card does not fit the guest's memory.
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probing import (
    CAPACITY_MIB,
    CARDS,
    HOST_NS,
    PAUSE_ERROR,
    errors,
    expected,
    is_pause,
    probed,
    small,
    wrong,
)
from steady_lab.devices.spec import load_device
from steady_lab.errors import LabError
from steady_lab.paths import BUILD, PROJECT
from steady_lab.toml_table import load_toml

PAGE = PROJECT / "docs" / "reference" / "steady-probe.md"
BEGIN, END = "<!-- cards: written by tests/bound/matrix.py -->\n", "<!-- /cards -->"
COLUMNS = [f"{place} {release}" for release in ("6.1", "6.12") for place in CAPACITY_MIB]
# Of the cards for tests only, those that a probe is for.
TESTS = ("test-cache-fua", "test-plain", "test-seconds-sd", "test-slow-sd")
NOT_RUN = "not run"
# What a round of the probe writes, and its commands, of which one continues.
ROUND_KIB, ROUND_COMMANDS = 884, 7
# A probe has to meet five.
PAUSES = 10
QUICK_S = 20


@dataclass(frozen=True)
class Cell:
    """A card, and how it is probed."""

    card: str
    column: str

    def __str__(self) -> str:
        return f"{self.card} {self.column}"


@dataclass(frozen=True)
class Outcome:
    """The largest errors of times and of pauses, relative, and the faults in words."""

    time: float
    pause: float | None
    wrong: tuple[str, ...]

    def is_right(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        if self.wrong:
            return f"**{self.wrong[0]}**"
        pause = "" if self.pause is None else f", {100 * self.pause:.1f}"
        return f"{100 * self.time:.1f}{pause}"


def cards() -> list[str]:
    """The names of all cards of the lab but those that only tests need."""
    names = sorted(path.stem for path in CARDS.glob("*.toml"))
    files = {name: load_toml(CARDS / f"{name}.toml") for name in names}
    is_card = {name: file.get("kind") != "nvme" for name, file in files.items()}
    return [n for n in names if is_card[n] and (n in TESTS or not n.startswith("test-"))]


CELLS = [Cell(card, column) for card in cards() for column in COLUMNS]


def length(card: Path) -> str:
    """For how long a probe has to write to meet the pauses."""
    values = load_device(card).values
    per_kib_ns = values["write_per_kib_ns"] + values["bus_per_kib_ns"]
    alone_ns = values["write_base_ns"] + values["write_jump_ns"]
    round_ns = ROUND_COMMANDS * alone_ns + ROUND_KIB * per_kib_ns
    pause_ns = values["write_pause_kib"] / ROUND_KIB * round_ns + values["write_pause_ns"]
    seconds = math.ceil(PAUSES * pause_ns / 1e9)
    return "--quick" if seconds <= QUICK_S else f"--duration={seconds}s"


def beyond(profile: dict[str, Any], stall_ns: int) -> Iterator[str]:
    """Name each operation for which the profile reports stalls that the card does not have."""
    most_ns = (1 + PAUSE_ERROR) * stall_ns + HOST_NS
    for op, seen in profile["seen"].items():
        if seen["beyond_ns"] >= most_ns or (seen["beyond_count"] and not stall_ns):
            yield f"seen.{op}.beyond_ns {seen['beyond_ns']}"


def outcome(cell: Cell, work: Path) -> Outcome:
    place, release = cell.column.split()
    card = small(cell.card, work, place)
    profile = probed(card, work, place, release, length(card))
    (work / "card.img").unlink(missing_ok=True)
    stall_ns = 1_000 * load_device(card).values["stall_high_us"]
    wanted = expected(card, place)
    found = errors(profile, wanted)
    pauses = [error for key, error in found.items() if is_pause(key) and wanted[key]]
    faults = [
        f"{key} is not 0" if math.isinf(error) else f"{key} {100 * error:.0f} %"
        for key, error in wrong(profile, wanted).items()
    ]
    return Outcome(
        max(error for key, error in found.items() if not is_pause(key)),
        max(pauses, default=None),
        (*faults, *beyond(profile, stall_ns)),
    )


def in_folder(cell: Cell) -> str:
    """The text of a cell, with the boot's files below build/tests."""
    work = BUILD / "tests" / "matrix" / str(cell).replace(" ", "-")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        return str(outcome(cell, work))
    except (AssertionError, LabError) as error:
        print(f"{cell}: {error}", flush=True)
        return "**no profile**"


def known(text: str) -> dict[Cell, str]:
    """The cells that the page has."""
    rows = text.split(BEGIN)[1].split(END)[0].splitlines()[2:]
    split = [[word.strip() for word in row.strip("|").split("|")] for row in rows]
    return {
        Cell(card.strip("`"), column): word
        for card, *words in split
        for column, word in zip(COLUMNS, words, strict=True)
    }


def page(text: str, found: dict[Cell, str]) -> str:
    """The page with these cells."""
    before, rest = text.split(BEGIN)
    table = f"| card | {' | '.join(COLUMNS)} |\n|{' --- |' * (1 + len(COLUMNS))}\n"
    for card in cards():
        words = [found.get(Cell(card, column), NOT_RUN) for column in COLUMNS]
        table += f"| `{card}` | {' | '.join(words)} |\n"
    return before + BEGIN + table + END + rest.split(END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Probe emulated cards, and write how wrong it is.")
    parser.add_argument(
        "--cell", metavar="TEXT", default="", help="only cells with TEXT in the name"
    )
    parser.add_argument("cards", metavar="CARD", nargs="*", help="[all]")
    arguments = parser.parse_args()
    named = arguments.cards or cards()
    chosen = [cell for cell in CELLS if cell.card in named and arguments.cell in cell.column]
    with ThreadPoolExecutor(2) as pool:
        running = {pool.submit(in_folder, cell): cell for cell in chosen}
        for done in as_completed(running):
            text = PAGE.read_text(encoding="utf-8")
            found = known(text) | {running[done]: done.result()}
            PAGE.write_text(page(text, found), encoding="utf-8")
            print(f"{running[done]}: {found[running[done]]}", flush=True)


if __name__ == "__main__":
    main()
