# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab device`: fit the emulated devices, and print the keys of their specs."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from steady_lab.commands.arguments import device as device_argument
from steady_lab.commands.arguments import new_file
from steady_lab.devices import ssd_fit
from steady_lab.devices.emmc import EMMC
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
from steady_lab.devices.measured_fit import fit_file
from steady_lab.devices.spec import load_device
from steady_lab.devices.spec_text import spec_text
from steady_lab.devices.ssd_load import SPEC, build
from steady_lab.devices.transfer_fit import (
    OPS,
    TRANSFERS,
    cards_of,
    fitted_base_ns,
    load_transfers,
    transfer_mismatches,
)
from steady_lab.errors import SpecError
from steady_lab.pages import ssd_page
from steady_lab.pages.device_page import PART, RECORD, fit_tables, keys_table
from steady_lab.pages.recorded_tables import write_tables

WITHOUT_FILE = {
    "ssd": "the SSD",
    "published": "the start spec",
    "transfers": "the other cards",
}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    device = subparsers.add_parser("device", help="fit the timing of the emulated devices")
    actions = device.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser(
        "fit",
        help="make a card of a measurement, or fit the lab's devices to published values",
        description="With FILE: prints the spec of a card that behaves as measured, with the "
        "fields that it used, the gaps and the assumptions. Without: fits the emulated cards and "
        "the SSD to published values, and compares the fit with their specs. Then it writes the "
        f"errors of the fit into the records ({RECORD.name}). It simulates the SSD repeatedly, "
        "which takes several minutes, and prints each better fit.",
        epilog="Exit status: 0 the spec is written, or the specs hold the fitted values; 1 the "
        "specs hold other values, and the record is unchanged.",
    )
    action.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="result of fio --output-format=json, or a profile of steady probe",
    )
    action.add_argument(
        "--out", type=new_file, metavar="SPEC", help="with FILE: write the spec [standard output]"
    )
    action.add_argument(
        "--device",
        type=device_argument,
        metavar="NAME|SPEC",
        help="with FILE: the card that has what it leaves open; without: start spec of the fit, "
        "which is also checked [the FORESEE card]",
    )
    for name, what in WITHOUT_FILE.items():
        action.add_argument(
            f"--{name}", type=Path, metavar="FILE", help=f"without FILE: values to fit {what} to"
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
    if arguments.file:
        return _run_fit_file(arguments)
    if arguments.out:
        raise SpecError(f"--out {arguments.out}: only with FILE, a measurement")
    spec = load_device(arguments.device or DEVICE)
    cells = load_published(arguments.published or PUBLISHED)
    print(f"{spec.name}:")
    for op in FITTED:
        print(f"[{op}]")
        for key, value in spec_values(fit(timing_of(spec, op), op, cells), op).items():
            print(f"{key} = {value}")
    wrong = mismatches(spec, cells)
    transfers = load_transfers(arguments.transfers or TRANSFERS)
    for card in cards_of(transfers):
        print(f"\n{card.name}:")
        for op in OPS:
            print(f"[{op}]\nbase_ns = {fitted_base_ns(card, op, transfers)}")
        wrong += transfer_mismatches(card, transfers)
    published = ssd_fit.load_published(arguments.ssd or ssd_fit.PUBLISHED)
    wrong += _fit_ssd(published)
    if wrong:
        print(f"\nthe specs hold other values: {'; '.join(wrong)}")
        return 1
    write_tables(RECORD, PART, fit_tables(spec, cells, transfers))
    write_tables(RECORD, ssd_page.PART, ssd_page.committed_tables(published))
    print(f"\nthe specs hold these values; tables written to {RECORD}; run: steady-lab results")
    return 0


def _run_fit_file(arguments: argparse.Namespace) -> int:
    for name in WITHOUT_FILE:
        if getattr(arguments, name):
            raise SpecError(f"--{name} {getattr(arguments, name)}: only without FILE")
    fit = fit_file(arguments.file, load_device(arguments.device) if arguments.device else None)
    stem = (arguments.out or arguments.file).stem.lower()
    name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "measured"
    texts = {
        "name": name,
        "title": f"{name}, fitted to {arguments.file.name}",
        "source": f"{fit.source}; by steady-lab device fit",
    }
    notes = fit.notes.lines()
    text = spec_text(EMMC, texts, fit.product, fit.values, notes)
    if not arguments.out:
        print(text, end="")
        return 0
    arguments.out.write_text(text, encoding="utf-8")
    print("\n".join(notes))
    print(f"{arguments.out}: written; run: steady-lab boot --device {arguments.out} -- CMD")
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
