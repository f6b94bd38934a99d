# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab run`: run figures, or some of their boots, and evaluate their checks."""

from __future__ import annotations

import argparse
from dataclasses import replace

from steady_lab.commands.arguments import add_build_argument
from steady_lab.commands.executors import add_on_argument, executor_on
from steady_lab.figures.run import JOBS_DEFAULT, RunOrder, run_figures
from steady_lab.kernels.source import RELEASES

JOBS_MAX = 64


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run figures in the lab and check their claims",
        description="Boots every variant of the figures, writes results/NAME.json and NAME.csv in "
        "the build directory, and evaluates the checks. Keeps finished boots, and does not repeat "
        f"them. Results of kernels other than {RELEASES[0]} are in a subdirectory.",
        epilog="Exit status: 0 all checks hold; 1 a boot or a check failed; 130 interrupted.",
    )
    parser.add_argument(
        "figures",
        nargs="+",
        metavar="FIGURE",
        help="figure, or one panel as FIGURE-PANEL: a name in experiments/figures, or a file",
    )
    parser.add_argument("--jobs", type=_jobs, default=JOBS_DEFAULT, metavar="N",
                        help="number of parallel boots on this machine [%(default)s]")  # fmt: skip
    add_on_argument(parser)
    parser.add_argument("--only", metavar="VARIANT", help="boot only this variant")
    parser.add_argument("--fresh", action="store_true", help="repeat finished boots")
    add_release_arguments(parser)
    parser.set_defaults(func=_run)


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for kernel and build directory; shared with `demo`."""
    parser.add_argument(
        "--kernel", choices=RELEASES, default=RELEASES[0], help=f"kernel release [{RELEASES[0]}]"
    )
    add_build_argument(parser)


def _jobs(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to {JOBS_MAX}")
    return int(text)


def _run(args: argparse.Namespace) -> int:
    order = RunOrder(args.figures, args.build, args.kernel, args.jobs, args.only, args.fresh)
    with executor_on(args.on) as make_executor:
        return 0 if run_figures(replace(order, make_executor=make_executor)) else 1
