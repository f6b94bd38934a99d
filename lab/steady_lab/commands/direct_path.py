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
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import BUILD, PROJECT
from steady_lab.targets.uml import Uml

PAGE = PROJECT / "docs" / "results" / "chario.md"


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
        "--write", action="store_true", help=f"write the tables to docs/results/{PAGE.name}"
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
    name = f"timed-{kernel.release}"
    command = f"steady-lab direct-path --kernel {kernel.release} --write"
    _show(timed_tables(spec, results), (name, command) if arguments.write else None)
    lines = missed(results)
    for line in lines:
        print(f"\nnot as claimed: {line}")
    return 1 if lines else 0


def _count(spec: DirectPath, work: Path, write: bool) -> None:
    command = "steady-lab direct-path --count --write"
    card = count_on_stock(counted_cases(spec), work / "stock")
    _show(counted_tables(spec, card), ("counted", command) if write else None)
    stages = count_stages(spec, work / "stock-stages")
    _show([stages_table(stages)], ("counted-stages", command) if write else None)
    nvme = count_on_nvme(nvme_cases(spec), work / "stock-nvme")
    _show([nvme_table(spec, nvme)], ("counted-nvme", command) if write else None)


def _show(made: list[TextTable], part: tuple[str, str] | None) -> None:
    print("\n\n".join(table.text() for table in made))
    if not part:
        return
    text = "\n\n".join(table.markdown() for table in made)
    page = with_part(PAGE.read_text(encoding="utf-8"), *part, f"{text}\n")
    PAGE.write_text(page, encoding="utf-8")
    print(f"\n{PAGE}: tables written")
