# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab search`: random cases against what must always hold."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from steady_lab.commands.arguments import add_build_argument, positive_int, random_seed, seconds
from steady_lab.commands.executors import add_on_argument, executor_on
from steady_lab.figures.run import JOBS_DEFAULT
from steady_lab.kernels.source import RELEASES
from steady_lab.root.cargo import built_program
from steady_lab.root.steady_command import STEADY, STEADY_GUEST
from steady_lab.search.case import parse
from steady_lab.search.case_boot import boot_of
from steady_lab.search.search import Found, Search
from steady_lab.targets.uml import uml

CASES_DEFAULT = 100
STATUS_FOUND = 3


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `search`."""
    parser = subparsers.add_parser(
        "search",
        help="test invariants with random workloads, knobs, faults and power cuts",
        description="Boots random cases. Shrinks each case that breaks an invariant, and prints it "
        "as one line of JSON, also to search/found.jsonl in the build directory.",
        epilog="Exit status: 0 nothing found; 1 failure; 3 a broken invariant; 130 interrupted.",
    )
    parser.add_argument("--cases", type=positive_int, metavar="N",
                        help=f"number of cases [{CASES_DEFAULT}, without --seconds]")  # fmt: skip
    parser.add_argument(
        "--seconds", type=seconds, metavar="S", help="start no case after S seconds"
    )
    parser.add_argument("--seed", type=random_seed, default=1, metavar="N",
                        help="seed of the first case; each next case adds 1 "
                        "[%(default)s]")  # fmt: skip
    parser.add_argument("--replay", metavar="LINE", help="run only this case, without shrinking it")
    parser.add_argument("--jobs", type=positive_int, default=JOBS_DEFAULT, metavar="N",
                        help="number of parallel boots on this machine [%(default)s]")  # fmt: skip
    parser.add_argument(
        "--kernel", choices=RELEASES, default=RELEASES[0], help=f"kernel release [{RELEASES[0]}]"
    )
    add_on_argument(parser)
    add_build_argument(parser)
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    for program in (STEADY, STEADY_GUEST):
        built_program(program)
    work = args.build / "search"
    work.mkdir(parents=True, exist_ok=True)
    with executor_on(args.on) as make_executor:
        search = Search(uml(args.kernel), make_executor(args.jobs), work)
        found = 0
        for item in _replayed(search, args.replay) if args.replay else _searched(search, args):
            found += 1
            _tell(search, item)
    return STATUS_FOUND if found else 0


def _searched(search: Search, args: argparse.Namespace) -> Iterator[Found]:
    cases = args.cases if args.cases or args.seconds else CASES_DEFAULT
    for item in search.run(args.seed, cases, args.seconds):
        with (search.work / "found.jsonl").open("a", encoding="utf-8") as file:
            file.write(item.case.line() + "\n")
        yield item


def _replayed(search: Search, line: str) -> Iterator[Found]:
    (boot,) = search.boot([parse(line)])
    if boot.findings:
        yield Found(boot.case, boot.findings)


def _tell(search: Search, item: Found) -> None:
    for finding in item.findings:
        print(f"{finding.kind}: {finding.text}")
    print(f"replay: {boot_of(item.case, search.target, search.work).replay}", flush=True)
