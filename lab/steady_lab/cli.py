# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command `steady-lab`: subcommands from commands/, errors without traceback.

Exit status: 0 done, 1 failed (the message says what), 2 wrong usage, 130 interrupted; `boot` passes
on the exit status of the command that it ran.
"""

import argparse
import importlib
import os
import select
import sys
from collections.abc import Sequence

from steady_lab import __version__
from steady_lab.errors import LabError
from steady_lab.os_errors import sentence

COMMAND_MODULES = (
    "root",
    "kernel",
    "prebuilt",
    "boot",
    "device",
    "devices",
    "power_cut",
    "cpu_cost",
    "call_cost",
    "direct_path",
    "run",
    "search",
    "report",
    "summary",
    "results",
    "demo",
    "completions",
)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line, with each module's subcommand registered."""
    parser = argparse.ArgumentParser(
        prog="steady-lab",
        description="Boot kernels in virtual time with emulated storage devices, and measure them.",
        epilog="Exit status: 0 success; 1 failure (with a message); 2 usage error; 130 "
        "interrupted. `boot` passes on the status of its command.",
    )
    parser.add_argument("--version", action="version", version=f"steady-lab {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMAND_MODULES:
        importlib.import_module(f"steady_lab.commands.{name}").register(subparsers)
    parser.set_defaults(whole=parser)  # for `completions`
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    try:
        arguments = build_parser().parse_args(argv)
        status = arguments.func(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_gone():
            raise
        # Python would report at its end what it could not write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except LabError as error:
        print(f"steady-lab: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        text = sentence(error)
        if text is None:
            raise
        print(f"steady-lab: {text}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsteady-lab: interrupted; finished boots and builds are kept", file=sys.stderr)
        return 130
    return int(status)


def _reader_has_gone() -> bool:
    """Whether what reads standard output, such as `head`, has ended."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


if __name__ == "__main__":
    sys.exit(main())
