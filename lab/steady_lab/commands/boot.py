# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab boot`: run a command in a guest, next to an emulated device."""

import argparse
import sys
import tempfile
from pathlib import Path

from steady_lab.commands.arguments import positive_int, random_seed, seconds
from steady_lab.commands.kernel import add_kernel_arguments, chosen_kernel
from steady_lab.targets.target import WALL_TIMEOUT_S_DEFAULT, BootRequest
from steady_lab.targets.uml import VIRTUAL_TIMEOUT_S_DEFAULT, Uml

EPILOG = """
The guest's root is the lab's own Debian 12, read-only. The command starts in the work folder, the
only place on this machine that it can write to (in the guest: /run/steadyio/work); this clone is
at /run/steadyio/project. /tmp, /run and /dev are the guest's own. The exit status is the command's;
1 with a message if the kernel misbehaved, 125 if the guest could not start the command.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "boot",
        help="run a command on the lab kernel",
        usage="steady-lab boot [options] -- CMD ...",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_kernel_arguments(parser)
    parser.add_argument("--device", type=Path, metavar="SPEC", help="device spec (TOML)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="work folder [a temporary one]")
    parser.add_argument("--write-log", metavar="FILE",
                        help="log what is done to the device, in the work folder")  # fmt: skip
    parser.add_argument("--module", action="append", default=[], metavar="NAME",
                        help="also load this module of the kernel, such as null_blk")  # fmt: skip
    parser.add_argument("--random-seed", type=random_seed, default=0, metavar="N",
                        help="of the guest's random numbers [%(default)s]")  # fmt: skip
    parser.add_argument("--timeout", type=seconds, default=WALL_TIMEOUT_S_DEFAULT, metavar="S",
                        help="wall time limit [%(default)g]")  # fmt: skip
    parser.add_argument("--virtual-timeout", type=positive_int, default=VIRTUAL_TIMEOUT_S_DEFAULT,
                        metavar="S", help="limit in virtual time [%(default)s]")  # fmt: skip
    parser.add_argument("command", nargs="+", metavar="CMD", help="and its arguments, behind --")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    target = Uml(chosen_kernel(arguments), arguments.virtual_timeout)
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


def _print_output(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
