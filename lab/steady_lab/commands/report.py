# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab report`: one HTML page from results, traces, tune reports; a picture of a figure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from steady_lab.commands.arguments import add_build_argument
from steady_lab.errors import LabError
from steady_lab.pages.bench_section import read_bench_sections
from steady_lab.pages.report import Section, read_sections, render, write_page
from steady_lab.pages.screenshot import take_screenshot
from steady_lab.pages.trace_section import read_trace_sections
from steady_lab.pages.tune_section import read_tune_sections

SCREENSHOT_SIZE_PX = (1200, 520)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `report`."""
    parser = subparsers.add_parser("report", help="write one HTML page from all results")
    add_build_argument(parser)
    parser.add_argument(
        "--screenshot",
        type=Path,
        metavar="FILE.png",
        help="also write a picture of the figure with the name of FILE (needs chromium)",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        nargs="+",
        default=[],
        metavar="RECORD.json",
        help="also show these records of `steady trace --json`",
    )
    parser.add_argument(
        "--trace-rows",
        type=Path,
        nargs="+",
        default=[],
        metavar="ROWS.csv",
        help="add maps of latency to the records of --trace with the same names, from what "
        "`steady trace --csv` or `--json-lines` wrote of each I/O",
    )
    parser.add_argument(
        "--tune",
        type=Path,
        nargs="+",
        default=[],
        metavar="REPORT.json",
        help="also show these reports of `steady tune --out`",
    )
    parser.add_argument(
        "--bench",
        type=Path,
        nargs="+",
        default=[],
        metavar="RECORD.json",
        help="also show these records of `steady bench --out`",
    )
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    results = args.build / "results"
    traces = read_trace_sections(args.trace, args.trace_rows)
    tunes = read_tune_sections(args.tune)
    measured = read_bench_sections(args.bench)
    # Given files can be shown without any figure.
    has_figures = any(results.glob("*.json")) or not (traces or tunes or measured)
    sections = [*measured, *(read_sections(results) if has_figures else [])]
    print(f"report: {write_page(sections, args.build, traces, tunes)}")
    if args.screenshot:
        _picture(sections, args.screenshot)
        print(f"screenshot: {args.screenshot}")
    return 0


def _picture(sections: Sequence[Section], target: Path) -> None:
    named = [section for section in sections if section.figure.name == target.stem]
    if not named:
        names = ", ".join(section.figure.name for section in sections)
        raise LabError(f"--screenshot {target}: the file must be named after one of {names}")
    take_screenshot(render(named, bare=True), target, SCREENSHOT_SIZE_PX)
