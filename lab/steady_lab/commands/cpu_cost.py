# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab cpu-cost`: count instructions, print the tables, compare k2 with mq-deadline."""

from __future__ import annotations

import argparse
import sys

from steady_lab.commands.kernel import add_kernel_arguments, chosen_kernel
from steady_lab.figures import lock_times, several_cpus
from steady_lab.figures.cpu_cost import (
    LOADS,
    SCHEDULERS,
    SMALL_LOAD,
    SMALL_SCHEDULERS,
    SPLIT_LOAD,
    SPLIT_SCHEDULERS,
    measure,
    missed_goals,
    tables,
)
from steady_lab.figures.table import TextTable
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import BUILD, PROJECT

PAGE = PROJECT / "docs" / "reference" / "cpu-cost.md"
COMMAND = "steady-lab cpu-cost --write"
COMMAND_SEVERAL_CPUS = "steady-lab cpu-cost --several-cpus --write"
COMMAND_LOCKS = "steady-lab cpu-cost --locks --write"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "cpu-cost",
        help="count instructions per request under each scheduler",
        epilog="Exit status: 0 success; 1 k2 without splitting costs more than mq-deadline, or more"
        " than 1.15 times as much with a real-time stream.",
    )
    add_kernel_arguments(parser)
    several = parser.add_mutually_exclusive_group()
    several.add_argument(
        "--several-cpus",
        action="store_true",
        help="count on several CPUs at once, with Debian's own kernel under QEMU (takes minutes)",
    )
    several.add_argument(
        "--locks",
        action="store_true",
        help="measure the time that several CPUs hold the schedulers' locks, with a kernel that "
        "counts it, under QEMU (takes minutes; the first run builds the kernel)",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--small", action="store_true", help="count few cases (takes seconds)")
    chosen.add_argument(
        "--write", action="store_true", help=f"write the tables to docs/reference/{PAGE.name}"
    )
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.several_cpus:
        return _run_several_cpus(small=arguments.small, write=arguments.write)
    if arguments.locks:
        return _run_locks(small=arguments.small, write=arguments.write)
    kernel = chosen_kernel(arguments)
    if arguments.small:
        cases = [(SMALL_LOAD, scheduler) for scheduler in SMALL_SCHEDULERS]
    else:
        cases = [(load, scheduler) for load in LOADS for scheduler in SCHEDULERS]
        cases += [(SPLIT_LOAD, scheduler) for scheduler in SPLIT_SCHEDULERS]
    if not arguments.small:
        print(f"counting {len(cases)} cases takes some minutes", file=sys.stderr)
    costs = measure(kernel, cases, BUILD / "work" / "cpu-cost")
    _show(tables(costs), ("tables", COMMAND) if arguments.write else None)
    missed = missed_goals(costs)
    for line in missed:
        print(f"\nk2 costs more than mq-deadline: {line}")
    return 1 if missed else 0


def _run_several_cpus(*, small: bool, write: bool) -> int:
    release = several_cpus.RELEASE
    print(f"{release} with up to {several_cpus.CPUS_MAX} CPUs", file=sys.stderr)
    made = several_cpus.tables(several_cpus.measure(BUILD / "work" / "several-cpus", small=small))
    _show(made, ("several-cpus", COMMAND_SEVERAL_CPUS) if write else None)
    return 0


def _run_locks(*, small: bool, write: bool) -> int:
    found = lock_times.measure_locks(BUILD / "work" / "lock-times", small=small)
    _show(lock_times.tables(found), ("locks", COMMAND_LOCKS) if write else None)
    return 0


def _show(made: list[TextTable], part: tuple[str, str] | None) -> None:
    """Print tables; `part`: its name in the page, and the command, to write them there as well."""
    print("\n\n".join(table.text() for table in made))
    if not part:
        return
    name, command = part
    text = "\n\n".join(table.markdown() for table in made)
    page = with_part(PAGE.read_text(encoding="utf-8"), name, command, f"{text}\n")
    PAGE.write_text(page, encoding="utf-8")
    print(f"\n{PAGE}: tables written")
