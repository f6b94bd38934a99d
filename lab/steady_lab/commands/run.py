# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab run`: figures by name, and which of their boots."""

from __future__ import annotations

import argparse
from pathlib import Path

from steady_lab.figures.run import JOBS_DEFAULT, RunOrder, run_figures
from steady_lab.kernels.source import RELEASES
from steady_lab.paths import BUILD

JOBS_MAX = 64


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run figures in the lab and check their claims",
        description="Boots every variant of the figures, keeps what is finished, writes "
        "results/NAME.json and NAME.csv below the build folder, and evaluates the checks. Another "
        f"kernel than {RELEASES[0]} has a folder of its own in there.",
        epilog="Exit status: 0 all claims hold, 1 a boot or a claim failed, 130 interrupted.",
    )
    parser.add_argument(
        "figures", nargs="+", metavar="FIGURE", help="figure, or FIGURE-PANEL; name or file"
    )
    parser.add_argument("--jobs", type=_jobs, default=JOBS_DEFAULT, help="boots side by side [2]")
    parser.add_argument("--only", metavar="VARIANT", help="boot only this variant")
    parser.add_argument("--fresh", action="store_true", help="run even what is finished")
    add_release_arguments(parser)
    parser.set_defaults(func=_run)


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say on which kernel, and where the results are kept; shared with `demo`."""
    parser.add_argument(
        "--kernel", choices=RELEASES, default=RELEASES[0], help=f"release [{RELEASES[0]}]"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of work and results")


def _jobs(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to {JOBS_MAX}")
    return int(text)


def _run(args: argparse.Namespace) -> int:
    order = RunOrder(args.figures, args.build, args.kernel, args.jobs, args.only, args.fresh)
    return 0 if run_figures(order) else 1
