# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device fit`: fit the emulated devices and keep docs/devices.md true."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.devices import ssd_fit
from steady_lab.devices.fit import (
    DEVICE,
    FITTED,
    PUBLISHED,
    fit,
    load_published,
    mismatches,
    spec_values,
    timing_of,
)
from steady_lab.devices.spec import load_device
from steady_lab.devices.ssd_load import SPEC, build
from steady_lab.devices.transfer_fit import (
    OPS,
    TRANSFERS,
    cards_of,
    fitted_base_ns,
    load_transfers,
    transfer_mismatches,
)
from steady_lab.pages.device_page import PAGE, written_page
from steady_lab.pages.ssd_page import with_ssd


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    device = subparsers.add_parser("device", help="fit the timing of the emulated devices")
    actions = device.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser(
        "fit",
        help="fit cards and SSD to published values, and write the tables in docs/devices.md",
        description="Fits the emulated cards and the SSD to published values, compares the fit "
        "with their specs, and writes the tables in docs/devices.md. Simulates the SSD repeatedly, "
        "which takes several minutes, and prints each better fit.",
        epilog="Exit status: 0 the specs hold the fitted values; 1 the specs hold other values, "
        "and the page is unchanged.",
    )
    action.add_argument(
        "--ssd",
        type=Path,
        default=ssd_fit.PUBLISHED,
        metavar="FILE",
        help="values to fit the SSD to [those of the paper on K2 and SSDs]",
    )
    action.add_argument(
        "--device",
        type=Path,
        default=DEVICE,
        metavar="SPEC",
        help="start spec of the fit, which is also checked [the FORESEE card]",
    )
    action.add_argument(
        "--published", type=Path, default=PUBLISHED, metavar="FILE", help="values to fit SPEC to"
    )
    action.add_argument(
        "--transfers",
        type=Path,
        default=TRANSFERS,
        metavar="FILE",
        help="transfer times to fit the other cards to",
    )
    action.set_defaults(func=_run_fit)


def _run_fit(arguments: argparse.Namespace) -> int:
    spec, cells = load_device(arguments.device), load_published(arguments.published)
    print(f"{spec.name}:")
    for op in FITTED:
        print(f"[{op}]")
        for key, value in spec_values(fit(timing_of(spec, op), op, cells), op).items():
            print(f"{key} = {value}")
    wrong = mismatches(spec, cells)
    transfers = load_transfers(arguments.transfers)
    for card in cards_of(transfers):
        print(f"\n{card.name}:")
        for op in OPS:
            print(f"[{op}]\nbase_ns = {fitted_base_ns(card, op, transfers)}")
        wrong += transfer_mismatches(card, transfers)
    published = ssd_fit.load_published(arguments.ssd)
    wrong += _fit_ssd(published)
    if wrong:
        print(f"\nthe specs hold other values: {'; '.join(wrong)}")
        return 1
    page = written_page(PAGE.read_text(encoding="utf-8"), spec, cells, transfers)
    PAGE.write_text(with_ssd(page, published), encoding="utf-8")
    print(f"\nthe specs hold these values; tables written to {PAGE}")
    return 0


def _fit_ssd(published: ssd_fit.Published) -> list[str]:
    """Search, print what was found, and return where the specs differ."""
    drive = load_device(SPEC["half full"])
    print(f"\n{drive.name}:", flush=True)
    build()
    fitted = ssd_fit.fit(published, drive.values, _say_better)
    for name, value in fitted.items():
        print(f"{name} = {value}")
    return [
        f"{one.name}: {text}"
        for one in map(load_device, SPEC.values())
        for text in ssd_fit.mismatches(fitted, one.values)
    ]


def _say_better(values: dict[str, int], error: float) -> None:
    words = ", ".join(f"{name} {value}" for name, value in values.items())
    print(f"error {error:.2f}: {words}", file=sys.stderr)
