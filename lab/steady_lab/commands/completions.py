# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady-lab completions`: a script for a shell's completions, made from the parser itself.

The script is complete in itself: a shell does not start Python for each word.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from steady_lab.devices.names import device_names

SHELLS = ("bash", "zsh", "fish")
_BASH = """_steady_lab() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at="" one
    for one in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$at $one" in
%(levels)s
        esac
    done
    case "$at:$before" in
%(values)s
    esac
    case "$at" in
%(words)s
    esac
    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _steady_lab steady-lab
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "completions",
        help="generate shell completions",
        description="Prints a script that a shell completes the command line of steady-lab with. "
        "For example: steady-lab completions bash >/etc/bash_completion.d/steady-lab",
    )
    parser.add_argument("shell", choices=SHELLS, help="shell to complete for")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    script = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell]
    print(script(arguments.whole), end="")
    return 0


def bash(parser: argparse.ArgumentParser) -> str:
    """Return the script for bash."""
    levels, values, words = [], [], []
    for place, level in _levels(parser):
        below = _commands(level)
        levels += [f'            "{place} {name}") at="{place} {name}" ;;' for name in below]
        options = [option for action in level._actions for option in action.option_strings]
        for action in level._actions:
            choices = _choices(action)
            if choices and action.option_strings:
                cases = "|".join(f'"{place}:{option}"' for option in action.option_strings)
                values.append(f"        {cases}) {_reply(choices)}; return ;;")
            elif choices and not isinstance(action, argparse._SubParsersAction):
                options += choices
        words.append(f'        "{place}") {_reply([*below, *options])} ;;')
    parts = {"levels": levels, "values": values, "words": words}
    return _BASH % {name: "\n".join(lines) for name, lines in parts.items()}


def zsh(parser: argparse.ArgumentParser) -> str:
    """Return the script for zsh, which can run bash's."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(parser)}"


def fish(parser: argparse.ArgumentParser) -> str:
    """Return the script for fish."""
    lines = []
    for place, level in _levels(parser):
        within = [f"__fish_seen_subcommand_from {word}" for word in place.split()]
        below = _commands(level)
        if below:
            within.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
        when = f"-n '{'; and '.join(within)}'" if within else ""
        if below:
            lines.append(f"complete -c steady-lab -f {when} -a '{' '.join(below)}'")
        for action in level._actions:
            long = [option[2:] for option in action.option_strings if option.startswith("--")]
            choices = _choices(action)
            given = f"-xa '{' '.join(choices)}'" if choices else ""
            lines += [f"complete -c steady-lab {when} -l {name} {given}".rstrip() for name in long]
    return "\n".join(lines) + "\n"


def _reply(words: list[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))'


def _levels(
    parser: argparse.ArgumentParser, place: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command, by the words that lead to it."""
    yield place, parser
    for name, below in _commands(parser).items():
        yield from _levels(below, f"{place} {name}")


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _choices(action: argparse.Action) -> list[str]:
    """Return the values that may follow an option; for a device, the lab's names."""
    names: dict[str, Callable[[], list[str]]] = {"NAME|SPEC": device_names}
    if isinstance(action.metavar, str) and action.metavar in names:
        return names[action.metavar]()
    return [str(choice) for choice in action.choices or ()]
