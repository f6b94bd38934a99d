# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab devices`: list the emulated devices that `boot --device` and figures name."""

from __future__ import annotations

import argparse
import json

from steady_lab.devices.names import device_file, device_names
from steady_lab.devices.spec import load_device


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "devices",
        help="list the emulated devices",
        description="Lists the emulated devices, by the names that `boot --device` and figures "
        "take. docs/devices.md describes them.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    specs = {name: load_device(device_file(name)) for name in device_names()}
    if arguments.json:
        rows = {n: {"kind": s.kind.name, "title": s.title} for n, s in specs.items()}
        print(json.dumps(rows, indent=2))
        return 0
    width = max(map(len, specs))
    for name, spec in specs.items():
        print(f"{name:{width}}  {spec.kind.name:4}  {spec.title}")
    return 0
