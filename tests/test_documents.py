# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands of this repository in the documents exist. `steady` tests its own (documented.rs).

Those that only print are run, too. Other tests run the guides (tests/bound/test_deadlines.py,
tests/packages), and `make soak` the figures (tests/figures/soak_records.py).
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from steady_lab.cli import build_parser, main
from steady_lab.errors import LabError
from steady_lab.figures.spec import load_figures
from steady_lab.paths import PROJECT

pytestmark = pytest.mark.reads(
    *("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "lab", "scripts", "tests"),
    *("Makefile", "experiments", "device", "kernel"),
)

DOCUMENTS = (
    *(PROJECT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "lab").glob("*.md")),
)
OPERATOR = re.compile(r"\s(?:\||&&|;|&|>+\S*)(?=\s|$)|\s#\s.*")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
# A word that stands for another: NAME, SPEC.toml, [OPTION...].
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+|\.\.\.|\[|\|")


class Command(NamedTuple):
    """Words of a command line, and its document."""

    document: str
    words: list[str]
    in_block: bool


def calls(line: str) -> Iterator[list[str]]:
    """Yield the commands of a shell line, without settings of the environment."""
    for part in OPERATOR.split(f" {line} "):
        try:
            words = shlex.split(part)
        except ValueError:
            continue  # A quote of prose, or of another language than the shell's.
        while words and ASSIGNMENT.fullmatch(words[0]):
            words.pop(0)
        if words:
            yield words


def commands_of(path: Path) -> Iterator[Command]:
    """Yield the commands in blocks of code and between backticks."""
    in_block = False
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            in_block = not in_block
            continue
        spans = [line.strip().removeprefix("$ ")] if in_block else line.split("`")[1::2]
        for span in spans:
            for words in calls(span):
                yield Command(str(path.relative_to(PROJECT)), words, in_block)


@cache
def commands(program: str) -> list[Command]:
    """Return all calls of a program, by the end of its path."""
    found = [command for path in DOCUMENTS for command in commands_of(path)]
    return [one for one in found if re.fullmatch(rf"(?:\S*/)?{program}", one.words[0])]


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def why_refused(words: list[str]) -> str | None:
    """Say which subcommand or option steady-lab does not have."""
    parser = build_parser()
    while words and words[0] in subparsers_of(parser):
        parser, words = subparsers_of(parser)[words[0]], words[1:]
    own = words[: words.index("--")] if "--" in words else words
    if subparsers_of(parser) and own and not own[0].startswith("-"):
        return None if PLACEHOLDER.search(own[0]) else f"no subcommand {own[0]}"
    options = {word.strip("[],").split("=")[0] for word in own if word.strip("[").startswith("--")}
    unknown = options - set(parser._option_string_actions)
    return f"no option {min(unknown)}" if unknown else None


def test_each_subcommand_and_option_of_steady_lab_exists() -> None:
    found = commands("steady-lab")
    assert len(found) > 80
    refused = [(one.document, one.words, why_refused(one.words[1:])) for one in found]
    assert [one for one in refused if one[-1]] == []


def test_each_complete_command_line_of_steady_lab_is_accepted() -> None:
    refused = []
    for command in commands("steady-lab"):
        complete = not any(PLACEHOLDER.search(word) for word in command.words)
        if not command.in_block or not complete:
            continue
        try:
            arguments = build_parser().parse_args(command.words[1:])
            for figure in getattr(arguments, "figures", ()):
                load_figures(figure)
        except (SystemExit, LabError):
            refused.append(command)
    assert refused == []


def test_each_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for command in commands("make")
        if "-C" not in command.words
        for word in command.words[1:]
        if re.fullmatch(r"[a-z-]+", word)
    }
    assert len(named) > 8
    assert named - targets - {"menuconfig"} == set()


def test_each_script_and_each_path_of_a_command_exists() -> None:
    found = [*commands(r"scripts/[\w-]+"), *commands("build/venv/bin/python"), *commands("pytest")]
    assert len(found) > 30
    paths = {
        (command.document, word)
        for command in found
        for word in command.words
        if re.match(r"(?:scripts|tests|docs|experiments|device|kernel)/\S", word)
    }
    assert [one for one in sorted(paths) if not (PROJECT / one[1]).exists()] == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("run every-10-ms --kernel 6.12", None),
        ("run every-10-ms --kernl 6.12", "no option --kernl"),
        ("rnu every-10-ms", "no subcommand rnu"),
        ("device keyz emmc", "no subcommand keyz"),
        ("boot [OPTION...] -- CMD --any", None),
    ],
)
def test_a_wrong_name_is_found(line: str, why: str | None) -> None:
    assert why_refused(line.split()) == why


def test_a_line_has_the_commands_between_its_operators() -> None:
    line = "A=1 scripts/test -k 'a b' | cat && steady-lab run s1   # all panels"
    assert list(calls(line)) == [
        ["scripts/test", "-k", "a b"],
        ["cat"],
        ["steady-lab", "run", "s1"],
    ]


PRINTED = sorted({tuple(c.words[2:]) for c in commands("steady-lab") if "--print" in c.words})
QUICK = [
    *(["results", *words] for words in PRINTED if len(words) == 2 and "NAME" not in words[1]),
    *(
        c.words[1:]
        for c in commands("steady-lab")
        if c.words[1:3] in (["devices"], ["device", "keys"])
    ),
]


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_command_that_only_prints_prints(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out
