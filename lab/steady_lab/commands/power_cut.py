# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab power-cut`: a card's contents after a power cut, from the write log of one boot."""

import argparse
import re
import tempfile
from collections import Counter
from pathlib import Path

from steady_lab.commands.arguments import positive_int
from steady_lab.devices.power_cut.card import FATES, Cut, CutCard
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import Flags, WriteLog

EPILOG = """
Without options, the command counts the entries of LOG. TIME is in ns of the guest's
CLOCK_MONOTONIC. FATE selects the writes in the volatile cache that survive: lost (none), kept
(all), prefix (all up to a certain write), newest (only the last one), random. SEED selects one of
the possible outcomes.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "power-cut",
        help="rebuild a card after a power cut from its write log",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "log", type=Path, metavar="LOG", help="write log of `steady-lab boot --write-log LOG`"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--plan", type=positive_int, metavar="COUNT",
                        help="print COUNT cuts, spread over writes and flushes")  # fmt: skip
    action.add_argument("--cut", type=_cut, metavar="TIME:FATE:SEED",
                        help="rebuild the card after this cut (needs --image)")  # fmt: skip
    parser.add_argument(
        "--image", type=Path, metavar="FILE", help="with --cut, write the card to FILE"
    )
    parser.add_argument("--base", type=Path, metavar="FILE",
                        help="with --cut, the card before the log began [all zeroes]")  # fmt: skip
    parser.set_defaults(func=lambda arguments: _run(parser, arguments))


def _cut(text: str) -> Cut:
    found = re.fullmatch(r"(\d+):([a-z]+):(\d+)", text)
    if not found or found[2] not in FATES:
        allowed = f"TIME:FATE:SEED, such as 1000:lost:1; FATE is one of {', '.join(FATES)}"
        raise argparse.ArgumentTypeError(f"{text}: must be {allowed}")
    return Cut(int(found[1]), found[2], int(found[3]))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    if (arguments.cut is None) != (arguments.image is None):
        parser.error("--cut and --image belong together")
    log = WriteLog(arguments.log)
    if arguments.plan:
        for cut in plan_cuts(log, arguments.plan, 0, 0, 2**64):
            print(f"{cut.time_ns}:{cut.fate}:{cut.seed}")
    elif arguments.cut:
        with tempfile.TemporaryDirectory(dir=arguments.image.absolute().parent) as scratch:
            card = CutCard(log, Path(scratch) / "stable", arguments.base)
            card.write_cut(arguments.cut, arguments.image)
            card.close()
    else:
        _print_summary(log)
    return 0


def _print_summary(log: WriteLog) -> None:
    counts = Counter(record.kind.name.lower() for record in log.records)
    for kind, count in sorted(counts.items()):
        print(f"{kind} {count}")
    for flag in (Flags.CACHED, Flags.DURABLE, Flags.DRAINED):
        print(f"{str(flag.name).lower()} {sum(flag in record.flags for record in log.records)}")
    if log.records:
        print(f"from_ns {log.records[0].arrived_ns}\nto_ns {log.records[-1].finish_ns}")
