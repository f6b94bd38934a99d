# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab demo`: run the figures of the main claim, report them, say what they mean."""

from __future__ import annotations

import argparse
import time

from steady_lab.commands.run import add_release_arguments
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import load_figure
from steady_lab.pages.report import read_sections, write_page
from steady_lab.pages.summary import figure_summary

DEMO_FIGURES = ("s1-fig2-randread", "s1-fig5-randread")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `demo`."""
    parser = subparsers.add_parser(
        "demo", help="run the main figures, write the report, say what they mean"
    )
    add_release_arguments(parser)
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    start_s = time.monotonic()
    order = RunOrder(DEMO_FIGURES, args.build, args.kernel)
    held = run_figures(order)
    page = write_page(read_sections(order.folder / "results"), order.folder)
    for name in DEMO_FIGURES:
        print(f"\n{figure_summary(load_figure(name), order.folder / 'results')}")
    print(f"\nreport: {page}  ({time.monotonic() - start_s:.0f} s)")
    return 0 if held else 1
