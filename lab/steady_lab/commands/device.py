# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device fit`: fit the emulated cards and keep docs/devices.md true."""

from __future__ import annotations

import argparse
from pathlib import Path

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
from steady_lab.devices.transfer_fit import (
    OPS,
    TRANSFERS,
    cards_of,
    fitted_base_ns,
    load_transfers,
    transfer_mismatches,
)
from steady_lab.pages.device_page import PAGE, written_page


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    device = subparsers.add_parser("device", help="fit the timing of the emulated devices")
    actions = device.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser(
        "fit", help="fit the cards to published values and write the tables in docs/devices.md"
    )
    action.add_argument(
        "--device",
        type=Path,
        default=DEVICE,
        metavar="SPEC",
        help="spec to start from and check [the FORESEE card]",
    )
    action.add_argument(
        "--published", type=Path, default=PUBLISHED, metavar="FILE", help="values to fit it to"
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
    if wrong:
        print(f"\nthe specs hold other values: {'; '.join(wrong)}")
        return 1
    PAGE.write_text(written_page(PAGE.read_text(encoding="utf-8"), spec, cells, transfers))
    print(f"\nthe specs hold these values; tables written to {PAGE}")
    return 0
