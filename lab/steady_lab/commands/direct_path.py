# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab direct-path`: the ways to a card's data, as in the CharIO paper's Table I."""

from __future__ import annotations

import argparse
from pathlib import Path

from steady_lab.commands.kernel import add_kernel_arguments, chosen_kernel
from steady_lab.figures.direct_path import (
    COUNTED_RELEASE,
    count_on_nvme,
    count_on_stock,
    counted_cases,
    measure_on_card,
    nvme_cases,
    timed_cases,
)
from steady_lab.figures.direct_path_spec import DirectPath, load_direct_path
from steady_lab.figures.direct_stages import count_stages
from steady_lab.figures.table import TextTable
from steady_lab.pages.direct_path import (
    counted_tables,
    missed,
    nvme_table,
    stages_table,
    timed_tables,
)
from steady_lab.pages.recorded_tables import write_tables
from steady_lab.pages.results import RECORDS
from steady_lab.paths import BUILD
from steady_lab.targets.uml import Uml

RECORD = RECORDS / "direct-path.tables.csv"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "direct-path",
        help="compare character device, block device and ext4 in speed, commands and instructions",
        epilog="Exit status: 0 success; 1 the character device sends other commands than"
        " calculated, or is slower than O_DIRECT on the block device.",
    )
    add_kernel_arguments(parser)
    parser.add_argument(
        "--count",
        action="store_true",
        help=f"count instructions instead, with Debian's own {COUNTED_RELEASE} under QEMU "
        "(takes minutes)",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write the tables to docs/results/records/{RECORD.name}",
    )
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    spec = load_direct_path()
    work = BUILD / "work" / "direct-path"
    if arguments.count:
        _count(spec, work, arguments.write)
        return 0
    kernel = chosen_kernel(arguments)
    results = measure_on_card(Uml(kernel), spec.device, timed_cases(spec), work / kernel.release)
    _show(timed_tables(spec, results), f"timed-{kernel.release}", arguments.write)
    lines = missed(results)
    for line in lines:
        print(f"\nnot as claimed: {line}")
    return 1 if lines else 0


def _count(spec: DirectPath, work: Path, write: bool) -> None:
    card = count_on_stock(counted_cases(spec), work / "stock")
    _show(counted_tables(spec, card), "counted", write)
    stages = count_stages(spec, work / "stock-stages")
    _show([stages_table(stages)], "counted-stages", write)
    nvme = count_on_nvme(nvme_cases(spec), work / "stock-nvme")
    _show([nvme_table(spec, nvme)], "counted-nvme", write)


def _show(made: list[TextTable], part: str, write: bool) -> None:
    print("\n\n".join(table.text() for table in made))
    if write:
        write_tables(RECORD, part, made)
        print(f"\n{RECORD}: tables written; run: steady-lab results")
