# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab root`: the pinned Debian that guests run on, and the one that builds for them."""

import argparse
import sys
from pathlib import Path

from steady_lab.root.alone import unpacked
from steady_lab.root.apt import resolve
from steady_lab.root.cargo import (
    RUST_TARGETS,
    build_released_steady_for,
    build_steady,
    build_steady_for,
    build_steady_guest,
    build_steady_recipe,
    build_wheel_for,
    install_capi,
)
from steady_lab.root.lock import LOCK, NATIVE, PROMETHEUS, write_lock
from steady_lab.root.root import GUESTS, build_root, guest_root, services_root


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the command line."""
    root = subparsers.add_parser(
        "root", help="unpack the lab's own Debian 12, build in it, or pin its packages"
    )
    actions = root.add_subparsers(required=True, metavar="ACTION")
    build = actions.add_parser(
        "build", help="download and unpack Debian once, and print its two root directories"
    )
    build.add_argument(
        "--for",
        dest="architecture",
        choices=tuple(GUESTS),
        default=NATIVE,
        help="architecture of the guests, by its Debian name [%(default)s]",
    )
    build.set_defaults(func=_build)
    steady = actions.add_parser(
        "steady", help="build the command `steady` in the lab's Debian, and print its path"
    )
    _add_for(steady)
    steady.add_argument(
        "--release", action="store_true", help="with --for: as packages have it, not for tests"
    )
    steady.set_defaults(func=_steady)
    guest = actions.add_parser(
        "steady-guest", help="build the part of it that figures run, and print its path"
    )
    guest.set_defaults(func=_steady_guest)
    recipe = actions.add_parser(
        "steady-recipe", help="build the recorder of a paper's figures, and print its path"
    )
    recipe.set_defaults(func=_steady_recipe)
    capi = actions.add_parser(
        "capi", help="build the C interface in the lab's Debian, and install it into DIR"
    )
    capi.add_argument("folder", metavar="DIR", type=Path, help="parent of usr/lib and usr/include")
    _add_for(capi)
    capi.set_defaults(func=_capi)
    wheel = actions.add_parser(
        "wheel", help="build the recorder's Python package for another architecture into DIR"
    )
    wheel.add_argument("folder", metavar="DIR", type=Path, help="where the wheel goes")
    _add_for(wheel)
    wheel.set_defaults(func=_wheel)
    scraper = actions.add_parser(
        "prometheus", help="unpack Prometheus for the tests once, and print its directory"
    )
    scraper.set_defaults(func=_prometheus)
    services = actions.add_parser(
        "services",
        help="unpack systemd and udev for the tests once, and print their directory",
    )
    services.set_defaults(func=_services)
    lock = actions.add_parser(
        "lock",
        help=f"resolve the packages in the current archive and write {LOCK.name} (changes results)",
    )
    lock.set_defaults(func=_lock)


def _add_for(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for",
        dest="architecture",
        choices=(NATIVE, *RUST_TARGETS),
        default=NATIVE,
        help="architecture, by its Debian name [%(default)s]",
    )


def _build(arguments: argparse.Namespace) -> int:
    print(guest_root(arguments.architecture).path)
    print(build_root(arguments.architecture).path)
    return 0


def _steady(arguments: argparse.Namespace) -> int:
    of = arguments.architecture
    build = build_released_steady_for if arguments.release else build_steady_for
    print(build_steady() if of == NATIVE else build(of))
    return 0


def _steady_guest(arguments: argparse.Namespace) -> int:
    print(build_steady_guest())
    return 0


def _steady_recipe(arguments: argparse.Namespace) -> int:
    print(build_steady_recipe())
    return 0


def _capi(arguments: argparse.Namespace) -> int:
    install_capi(arguments.folder, arguments.architecture)
    return 0


def _wheel(arguments: argparse.Namespace) -> int:
    build_wheel_for(arguments.architecture, arguments.folder)
    return 0


def _prometheus(arguments: argparse.Namespace) -> int:
    print(unpacked(PROMETHEUS, "prometheus"))
    return 0


def _services(arguments: argparse.Namespace) -> int:
    print(services_root().path)
    return 0


def _lock(arguments: argparse.Namespace) -> int:
    packages = resolve()
    write_lock(packages)
    print(f"{LOCK}: {len(packages)} packages", file=sys.stderr)
    return 0
