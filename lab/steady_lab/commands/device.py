# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device`: fit the emulated devices, and print the keys of their specs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.commands.arguments import device as device_argument
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
from steady_lab.devices.kinds import DEFAULT, KINDS
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
from steady_lab.pages import ssd_page
from steady_lab.pages.device_page import PART, RECORD, fit_tables, keys_table
from steady_lab.pages.recorded_tables import write_tables


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    device = subparsers.add_parser("device", help="fit the timing of the emulated devices")
    actions = device.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser(
        "fit",
        help=f"fit cards and SSD to published values, and write {RECORD.name}",
        description="Fits the emulated cards and the SSD to published values, and compares the fit "
        "with their specs. Writes the errors of the fit into the records "
        f"({RECORD.name}). Simulates the SSD repeatedly, which takes several minutes, and prints "
        "each better fit.",
        epilog="Exit status: 0 the specs hold the fitted values; 1 the specs hold other values, "
        "and the record is unchanged.",
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
        type=device_argument,
        default=DEVICE,
        metavar="NAME|SPEC",
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
    keys = actions.add_parser("keys", help="print every number of a device spec")
    keys.add_argument(
        "kind",
        nargs="?",
        choices=sorted(KINDS),
        default=DEFAULT,
        help=f"kind of device [{DEFAULT}]",
    )
    keys.set_defaults(func=_run_keys)


def _run_keys(arguments: argparse.Namespace) -> int:
    print(keys_table(arguments.kind, KINDS[arguments.kind].numbers).text())
    return 0


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
    write_tables(RECORD, PART, fit_tables(spec, cells, transfers))
    write_tables(RECORD, ssd_page.PART, ssd_page.committed_tables(published))
    print(f"\nthe specs hold these values; tables written to {RECORD}; run: steady-lab results")
    return 0


def _fit_ssd(published: ssd_fit.Published) -> list[str]:
    """Search, print the result, and return where the specs differ from it."""
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
