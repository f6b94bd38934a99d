# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab boot`: run a command in a guest, next to an emulated device."""

import argparse
import sys
import tempfile
from pathlib import Path

from steady_lab.commands.arguments import device, directory, positive_int, random_seed, seconds
from steady_lab.commands.kernel import add_kernel_arguments, chosen_kernel
from steady_lab.errors import LabError
from steady_lab.kernels.architecture import FLAVOURS, QEMU_FLAVOURS
from steady_lab.kernels.source import RELEASES
from steady_lab.kernels.stock import STOCK_KERNELS, stock_kernel
from steady_lab.kernels.watching import WATCHED_RELEASES, watching_kernel
from steady_lab.targets.qemu import CPUS_DEFAULT, BootKernel, Qemu
from steady_lab.targets.qemu_disks import KINDS
from steady_lab.targets.target import WALL_TIMEOUT_S_DEFAULT, BootRequest, Target
from steady_lab.targets.uml import VIRTUAL_TIMEOUT_S_DEFAULT, Uml

EPILOG = """
The root file system of the guest is the lab's Debian 12, read-only. The command starts in the work
directory, which is /run/steadyio/work in the guest. It can write to no other directory of this
machine. This clone is at /run/steadyio/project, read-only. The guest has its own /tmp, /run and
/dev.

Exit status: status of the command; 1 with a message if the kernel reported an error or a time limit
was reached; 125 if the guest could not start the command.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "boot",
        help="run a command on the lab kernel",
        description="Boot a kernel, load k2, and run a command in the guest.",
        usage="steady-lab boot [options] -- CMD ...",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_kernel_arguments(parser, STOCK_KERNELS, (*FLAVOURS, *QEMU_FLAVOURS))
    parser.add_argument(
        "--device",
        type=device,
        metavar="NAME|SPEC",
        help="emulated device: a name of `steady-lab devices`, or a spec file [none]",
    )
    parser.add_argument(
        "--work", type=directory, metavar="DIR", help="work directory [a temporary one]"
    )
    parser.add_argument("--write-log", metavar="FILE",
                        help="log the device writes to FILE in the work directory")  # fmt: skip
    parser.add_argument("--module", action="append", default=[], metavar="NAME",
                        help="also load this kernel module, for example null_blk "
                        "(repeatable)")  # fmt: skip
    parser.add_argument("--random-seed", type=random_seed, default=0, metavar="N",
                        help="seed of the guest's random numbers [%(default)s]")  # fmt: skip
    parser.add_argument("--timeout", type=seconds, default=WALL_TIMEOUT_S_DEFAULT, metavar="S",
                        help="wall time limit in seconds [%(default)g]")  # fmt: skip
    parser.add_argument("--target", choices=("uml", "qemu"), default="uml",
                        help="uml: the lab kernel in virtual time; qemu: Debian's own kernel with "
                        "several CPUs and real clocks [%(default)s]")  # fmt: skip
    parser.add_argument("--cpus", type=positive_int, metavar="N",
                        help=f"number of CPUs under qemu [{CPUS_DEFAULT}]")  # fmt: skip
    parser.add_argument("--disk", action="append", default=[], choices=sorted(KINDS),
                        help="empty disk under qemu (repeatable)")  # fmt: skip
    parser.add_argument("--instruction-ns", type=positive_int, metavar="N",
                        help="under qemu, count time in instructions of N ns "
                        "(a power of two)")  # fmt: skip
    parser.add_argument("--virtual-timeout", type=positive_int, default=VIRTUAL_TIMEOUT_S_DEFAULT,
                        metavar="S",
                        help="virtual time limit in seconds [%(default)s]")  # fmt: skip
    parser.add_argument(
        "command", nargs="+", metavar="CMD", help="command and its arguments, after --"
    )
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    target = _target(arguments)
    with tempfile.TemporaryDirectory(prefix="steadyio-boot-") as scratch:
        request = BootRequest(
            command=arguments.command,
            work=arguments.work or Path(scratch),
            device=arguments.device,
            write_log=arguments.write_log,
            modules=arguments.module,
            random_seed=arguments.random_seed,
            timeout_s=arguments.timeout,
            on_output=_print_output,
        )
        return target.boot(request).exit_status


def _target(arguments: argparse.Namespace) -> Target:
    if arguments.target == "uml":
        if arguments.disk or arguments.cpus or arguments.instruction_ns:
            raise LabError("--disk, --cpus and --instruction-ns are for --target qemu")
        if arguments.kernel not in RELEASES:
            raise LabError(f"the lab has {arguments.kernel} for --target qemu only")
        if arguments.flavour in QEMU_FLAVOURS:
            raise LabError(f"--flavour {arguments.flavour} is for --target qemu")
        return Uml(chosen_kernel(arguments), arguments.virtual_timeout)
    if arguments.source or arguments.flavour == "debug":
        raise LabError(
            "--target qemu boots Debian's own kernels, or those of --flavour "
            f"{', '.join(QEMU_FLAVOURS)}: no --source, no --flavour debug"
        )
    return Qemu(
        _qemu_kernel(arguments),
        arguments.cpus or CPUS_DEFAULT,
        tuple(arguments.disk),
        instruction_ns=arguments.instruction_ns or 0,
    )


def _qemu_kernel(arguments: argparse.Namespace) -> BootKernel:
    if arguments.flavour in QEMU_FLAVOURS:
        if arguments.kernel not in WATCHED_RELEASES:
            wanted = " or ".join(WATCHED_RELEASES)
            raise LabError(f"--flavour {arguments.flavour} is of {wanted} only")
        return watching_kernel(arguments.kernel, arguments.flavour)
    return stock_kernel(arguments.kernel)


def _print_output(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
