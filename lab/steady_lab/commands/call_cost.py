# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab call-cost`: the kernel's instructions per call on block and character devices."""

from __future__ import annotations

import argparse
import sys

from steady_lab.commands.kernel import add_kernel_arguments, chosen_kernel
from steady_lab.figures.call_cost import CASES, SMALL_CASES, measure, missed_goals, table
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import BUILD, PROJECT

PAGE = PROJECT / "docs" / "reference" / "chario.md"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "call-cost",
        help="count kernel instructions per call on a block and a character device",
        epilog="Exit status: 0 success; 1 a registered buffer costs more than allowed, compared"
        " with O_DIRECT and io_uring.",
    )
    add_kernel_arguments(parser)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--small", action="store_true", help="count only reads of 4 KiB")
    chosen.add_argument(
        "--write", action="store_true", help=f"write the table to docs/reference/{PAGE.name}"
    )
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    kernel = chosen_kernel(arguments)
    cases = SMALL_CASES if arguments.small else CASES
    print(f"counting {len(cases)} cases takes some minutes", file=sys.stderr)
    costs = measure(kernel, cases, BUILD / "work" / f"call-cost-{kernel.release}")
    made = table(costs)
    print(made.text())
    if arguments.write:
        name = f"cost-{kernel.release}"
        command = f"steady-lab call-cost --kernel {kernel.release} --write"
        page = with_part(PAGE.read_text(encoding="utf-8"), name, command, f"{made.markdown()}\n")
        PAGE.write_text(page, encoding="utf-8")
        print(f"\n{PAGE}: table written")
    missed = missed_goals(costs)
    for line in missed:
        print(f"\ncosts more than it may: {line}")
    return 1 if missed else 0
