# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands of `other_systems`: try, keep what was found, show it."""

from __future__ import annotations

import argparse
import sys

from other_processor import MODELS, prove_processor
from other_system import prove_system
from other_user import prove_user
from proof import HERE, Proof, kept_proofs, run_here
from proof_table import differences, table, write_page
from steady_lab.errors import LabError


def main() -> int:
    """Entry point; returns the exit status."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.func(arguments))
    except LabError as error:
        print(f"other_systems: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nother_systems: interrupted; what was found is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="other_systems", description="See the script's head.")
    actions = parser.add_subparsers(required=True, metavar="COMMAND")
    processor = actions.add_parser("processor", help="on processors that QEMU emulates")
    processor.add_argument("models", nargs="*", default=MODELS, help=f"[{' '.join(MODELS)}]")
    processor.set_defaults(func=_processor)
    system = actions.add_parser("system", help="in a minimal system of another kind")
    system.add_argument("suite", help="such as bookworm or trixie")
    system.add_argument("--mirror", metavar="URL", help="the suite's archive [Debian's]")
    system.add_argument("--from-scratch", action="store_true", help="with an empty cache")
    system.set_defaults(func=_system)
    user = actions.add_parser("user", help="as an ordinary user, in another folder")
    user.set_defaults(func=_user)
    shown = actions.add_parser("table", help="what was found so far")
    shown.add_argument("--write", action="store_true", help="also into the page")
    shown.set_defaults(func=_table)
    return parser


def _processor(arguments: argparse.Namespace) -> int:
    here = run_here()
    return max(_judge(here, prove_processor(model)) for model in arguments.models)


def _system(arguments: argparse.Namespace) -> int:
    system = prove_system(arguments.suite, arguments.mirror, arguments.from_scratch)
    return _judge(run_here(), system)


def _user(arguments: argparse.Namespace) -> int:
    return _judge(run_here(), prove_user())


def _judge(here: Proof, proof: Proof) -> int:
    """Keep what was found and say how it compares; 1 if it differs."""
    proof.keep()
    wrong = differences(here, proof)
    print(f"{proof.where}: {'DIFFERS: ' + ', '.join(wrong) if wrong else 'same bytes'}")
    return 1 if wrong else 0


def _table(arguments: argparse.Namespace) -> int:
    proofs = kept_proofs()
    here, others = proofs[0], [proof for proof in proofs if proof.name != HERE]
    text = table(here, others)
    print(text, end="")
    if arguments.write:
        write_page(text)
    return 1 if any(differences(here, proof) for proof in others) else 0


if __name__ == "__main__":
    sys.exit(main())
