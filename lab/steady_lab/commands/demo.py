# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab demo`: run the figures of the main claim, report and summarise them."""

from __future__ import annotations

import argparse
import time

from steady_lab.commands.run import add_release_arguments
from steady_lab.figures.run import RunOrder, run_figures
from steady_lab.figures.spec import load_figure
from steady_lab.kernels.source import release_folder
from steady_lab.pages.records import compare_with_record
from steady_lab.pages.report import read_sections, write_page
from steady_lab.pages.results import RECORDS
from steady_lab.pages.summary import figure_summary
from steady_lab.paths import PROJECT

DEMO_FIGURES = ("every-10-ms", "s1-fig5-randread")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `demo`."""
    parser = subparsers.add_parser(
        "demo", help="run the main figures, write the report, and compare with committed results"
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
    same = _say_whether_same(order)
    print(f"report: {page}  ({time.monotonic() - start_s:.0f} s)")
    return 0 if held and same else 1


def _say_whether_same(order: RunOrder) -> bool:
    """Compare with the committed records, which have the same bytes on every machine."""
    folder = release_folder(RECORDS.parent, order.release) / RECORDS.name
    figures = [load_figure(name) for name in DEMO_FIGURES]
    if not all((folder / f"{figure.name}.csv").is_file() for figure in figures):
        print(f"\nnot compared: no results of {order.release} are committed")
        return True
    told = [compare_with_record(figure, order.folder / "results", folder) for figure in figures]
    differing = [text for text in told if text]
    if not differing:
        print(f"\nsame bytes: both results are those of {folder.relative_to(PROJECT)}, to the byte")
        return True
    print("\nother bytes: " + "; ".join(differing))
    print(
        "If the kernel's modules, steady or the lab were changed, these are the effects: "
        "`steady-lab results --build` accepts them. Otherwise see docs/reference/reproducible.md."
    )
    return False
