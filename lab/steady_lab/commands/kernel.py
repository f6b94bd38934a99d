# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab kernel`: build the lab kernel and modules, or print where a kernel or source is."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from steady_lab.commands.arguments import positive_int
from steady_lab.devices.kinds import MODULES
from steady_lab.errors import LabError
from steady_lab.kernels.architecture import FLAVOURS, LOCKSTAT, QEMU_FLAVOURS
from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.modules import ON_REQUEST, build_modules, sparse_findings
from steady_lab.kernels.source import RELEASES, find_source, named_source
from steady_lab.kernels.stock import STOCK_KERNELS, stock_kernel


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the command line."""
    kernel = subparsers.add_parser("kernel", help="build the lab kernel and its modules")
    actions = kernel.add_subparsers(required=True, metavar="ACTION")
    build = actions.add_parser("build", help="build a lab kernel once, and keep it in the cache")
    modules = actions.add_parser(
        "modules", help="build k2, chario and the emulated devices against the lab kernel"
    )
    source = actions.add_parser("source", help="print the directory of the unpacked kernel source")
    stock = actions.add_parser(
        "stock", help="print the directory of the Debian kernel that --target qemu boots"
    )
    stock.add_argument(
        "--kernel",
        choices=STOCK_KERNELS,
        default=RELEASES[0],
        help=f"kernel release [{RELEASES[0]}]",
    )
    flavours = (*FLAVOURS, *QEMU_FLAVOURS)
    for action in (build, modules, source):
        add_kernel_arguments(action, flavours=flavours)
    build.add_argument(
        "--jobs", type=positive_int, metavar="N", help="number of parallel compilations [all cores]"
    )
    modules.add_argument("--sparse", action="store_true", help="also check the modules with sparse")
    build.set_defaults(func=_run_build)
    source.set_defaults(func=_run_source)
    stock.set_defaults(func=_run_stock)
    modules.set_defaults(func=_run_modules)


def add_kernel_arguments(
    parser: argparse.ArgumentParser,
    releases: Sequence[str] = RELEASES,
    flavours: Sequence[str] = FLAVOURS,
) -> None:
    """Options that choose a kernel; shared with `boot`."""
    of_qemu = "; for QEMU: kcsan, kasan (with lockdep), lockstat"
    parser.add_argument(
        "--flavour",
        choices=flavours,
        default="base",
        help="base: fast; debug: with lockdep, KASAN and fault injection"
        f"{of_qemu if LOCKSTAT in flavours else ''} [base]",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--kernel",
        choices=releases,
        default=RELEASES[0],
        help=f"kernel release, from Debian's linux-source package [{RELEASES[0]}]",
    )
    chosen.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="clean kernel tree, instead of Debian's package",
    )


def chosen_kernel(arguments: argparse.Namespace) -> LabKernel:
    """The kernel that the shared options name; builds it if necessary."""
    jobs = getattr(arguments, "jobs", None)
    source = named_source(arguments.source, arguments.kernel)
    return build_kernel(source, arguments.flavour, jobs)


def _run_build(arguments: argparse.Namespace) -> int:
    kernel = chosen_kernel(arguments)
    print(kernel.linux)
    return 0


def _run_modules(arguments: argparse.Namespace) -> int:
    kernel = chosen_kernel(arguments)
    modules = (*MODULES, *ON_REQUEST.values())
    for path in build_modules(kernel, modules).values():
        print(path)
    findings = sparse_findings(kernel, modules) if arguments.sparse else ""
    if findings:
        raise LabError(f"sparse:\n{findings}")
    return 0


def _run_source(arguments: argparse.Namespace) -> int:
    print(find_source(arguments.source, arguments.kernel).tree)
    return 0


def _run_stock(arguments: argparse.Namespace) -> int:
    print(stock_kernel(arguments.kernel).tree)
    return 0
