# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab prebuilt`: compiled kernels, modules and `steady`, from one clone to others."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steady_lab.commands.arguments import new_file
from steady_lab.devices.kinds import MODULES
from steady_lab.kernels.modules import ON_REQUEST
from steady_lab.kernels.prebuilt import pack, unpack_matching
from steady_lab.kernels.source import RELEASES

KERNELS = {
    "demo": [(RELEASES[0], "base")],
    "test": [(RELEASES[0], "base"), (RELEASES[1], "base"), (RELEASES[1], "debug")],
}

ALL_MODULES = (*MODULES, *ON_REQUEST.values())


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `prebuilt`."""
    prebuilt = subparsers.add_parser(
        "prebuilt", help="move compiled kernels and `steady` to or from another machine"
    )
    actions = prebuilt.add_subparsers(required=True, metavar="ACTION")
    packing = actions.add_parser(
        "pack", help="build kernels and `steady` if needed, and write them to FILE (tar.xz)"
    )
    packing.add_argument(
        "--for",
        dest="purpose",
        choices=tuple(KERNELS),
        default="demo",
        help="demo: one kernel, and of `steady` what figures run; test: the three kernels of make "
        "test, and all of `steady` [%(default)s]",
    )
    packing.set_defaults(func=_pack)
    unpacking = actions.add_parser(
        "unpack", help="put the builds in FILE that match this clone's sources into the cache"
    )
    unpacking.set_defaults(func=_unpack)
    for action, kind in ((packing, new_file), (unpacking, Path)):
        action.add_argument("file", metavar="FILE", type=kind)


def _pack(arguments: argparse.Namespace) -> int:
    with_steady = arguments.purpose == "test"
    pack(arguments.file, KERNELS[arguments.purpose], ALL_MODULES, with_steady)
    print(f"{arguments.file}: {arguments.file.stat().st_size / 1e6:.1f} MB")
    return 0


def _unpack(arguments: argparse.Namespace) -> int:
    taken, left_out = unpack_matching(arguments.file, ALL_MODULES)
    print(f"prebuilt, will not be compiled: {', '.join(taken)}")
    if left_out:
        print(
            f"{arguments.file}: left out, made of other sources: {', '.join(left_out)}",
            file=sys.stderr,
        )
    return 0
