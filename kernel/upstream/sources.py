# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files of the series at a stage, made from kernel/k2 and kernel/policy.

A stage is a folder in stages/. Its stage.toml lists the sources that the stage adds, and for each
file what the stage adds to it. In earlier stages that part is left out: a definition with the
comment above it (`drop`), some lines (`lines`, or `every` if they occur several times), or a text
in whose place an earlier stage has another (`edit`). `head` is another first comment. A text that
is not there is an error, so a change of the module that the series does not know is found. Stage 0
is never reached: it holds what only the module has, such as the support of other releases.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

UPSTREAM = Path(__file__).resolve().parent
KERNEL = UPSTREAM.parent
SOURCES = (KERNEL / "k2", KERNEL / "policy")
# In the module's release-dependent comments; the series is for one release.
RELEASES = re.compile(r"\b(?:6\.1|6\.12|6\.17|7\.3)\b")


class SeriesError(Exception):
    """The series cannot be made; the message says why."""


@dataclass(frozen=True)
class Part:
    """What a stage adds to a file, and so what earlier stages lack."""

    stage: str
    name: str
    drop: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    every: list[str] = field(default_factory=list)
    edit: list[list[str]] = field(default_factory=list)
    head: str = ""

    def removed_from(self, text: str) -> str:
        """Return the file's text without this part."""
        for name in self.drop:
            text = without_definition(text, name, self._where())
        for old in self.every:
            text = self._replaced(text, old, "", -1)
        for old in self.lines:
            text = self._replaced(text, old, "", 1)
        for old, new in self.edit:
            text = self._replaced(text, old, new, 1)
        if self.head:
            licence, _, rest = text.partition("\n")
            text = f"{licence}\n{self.head}{rest[rest.index('#include') :]}"
        return text

    def _replaced(self, text: str, old: str, new: str, times: int) -> str:
        found = text.count(old)
        if found == 0 or times > 0 and found != times:
            raise SeriesError(
                f"{self._where()} quotes a text that {self.name} has {found} times: adapt it to "
                f"kernel/k2 or kernel/policy:\n{old}"
            )
        return text.replace(old, new)

    def _where(self) -> str:
        return f"kernel/upstream/stages/{self.stage}/stage.toml"


@dataclass(frozen=True)
class Derived:
    """Code outside block/k2 that is made of definitions of a source."""

    source: str
    definitions: list[str]
    edit: list[list[str]]


@dataclass(frozen=True)
class Stage:
    """A patch: what it adds. `number` 0: what the series never has."""

    number: int
    folder: Path
    add: list[str]
    parts: list[Part]
    never: list[str]
    derived: Derived | None

    def own(self, name: str) -> Path:
        """A file of the series alone that comes with this stage; it may be missing."""
        return self.folder / name


@cache
def stages() -> list[Stage]:
    """All stages, in the order of their numbers."""
    found = []
    for path in sorted(UPSTREAM.glob("stages/*/stage.toml")):
        table = tomllib.loads(path.read_text())
        parts = [Part(path.parent.name, **part) for part in table.get("file", [])]
        number = int(path.parent.name.partition("-")[0])
        add, never = table.get("add", []), table.get("never", [])
        made = Derived(**table["derived"]) if "derived" in table else None
        found.append(Stage(number, path.parent, add, parts, never, made))
    return found


def module_files() -> dict[str, Path]:
    """The module's sources by their names."""
    files = {path.name: path for folder in SOURCES for path in folder.glob("k2*.[ch]")}
    known = {name for stage in stages() for name in (*stage.add, *stage.never)}
    if files.keys() != known:
        raise SeriesError(
            "kernel/upstream/stages: each source of the module belongs to one stage.toml, in `add` "
            f"or `never`; to correct: {', '.join(sorted(files.keys() ^ known))}"
        )
    return files


def files_at(number: int) -> dict[str, str]:
    """The files of block/k2 at a stage, by their names there."""
    files = module_files()
    texts = {}
    for stage in stages()[1 : number + 1]:
        for stub in (stage.folder / "stubs").glob("*.h"):
            texts[stub.name] = stub.read_text()
        for name in stage.add:
            texts[_new_name(name)] = in_series(_text(files[name].read_text(), name, number), name)
    return texts


def _text(text: str, name: str, number: int) -> str:
    """The text of a source at a stage: without the later stages' parts, the last one first."""
    left_out = [stage for stage in reversed(stages()) if stage.number > number]
    for stage in (stages()[0], *left_out):
        for part in stage.parts:
            if part.name == name:
                text = part.removed_from(text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r"\n\n(\t*})", r"\n\1", re.sub(r"{\n\n", "{\n", text))
    return text.rstrip("\n") + "\n"


def derived(stage: Stage) -> str:
    """Return the code outside block/k2 that a stage makes of definitions of the module."""
    made = stage.derived
    if made is None:
        return ""
    part = Part(stage.folder.name, made.source, edit=made.edit)
    source = module_files()[made.source].read_text()
    texts = [definition(source, one, stage.folder.name) for one in made.definitions]
    text = part.removed_from("".join(f"\n{one}" for one in texts))
    return re.sub(r"{\n\n", "{\n", re.sub(r"\n{3,}", "\n\n", text))


def _new_name(name: str) -> str:
    return name.removeprefix("k2_")


def in_series(text: str, name: str) -> str:
    """Return it with the names that files have in block/k2, and the headers of block."""
    text = re.sub(r'#include "k2_(\w+\.h)"', r'#include "\1"', text)
    text = re.sub(r'#include "(elevator|blk[\w-]*)\.h"', r'#include "../\1.h"', text)
    text = re.sub(r"\bk2_(\w+\.[ch])\b", r"\1", text)
    text = text.replace("TRACE_INCLUDE_FILE k2_trace", "TRACE_INCLUDE_FILE trace")
    text = re.sub(r"\bk2_(min|max)\(", r"\1(", text).replace("k2_div(", "div_u64(")
    for line in text.splitlines():
        if RELEASES.search(line) or "compat/" in line or "docs/" in line:
            raise SeriesError(
                f"stages/0-module/stage.toml leaves in {name} what only the module needs: {line}"
            )
    return text


def without_definition(text: str, name: str, where: str) -> str:
    """Remove a definition or prototype at the file's top level, with the comment above it."""
    lines = text.splitlines(keepends=True)
    start, end = _bounds(lines, name, where)
    if lines[start - 1 : start] == ["\n"] and lines[end : end + 1] == ["\n"]:
        end += 1
    return "".join(lines[:start] + lines[end:])


def definition(text: str, name: str, where: str) -> str:
    """Return a definition with the comment above it."""
    lines = text.splitlines(keepends=True)
    start, end = _bounds(lines, name, where)
    return "".join(lines[start:end])


def _bounds(lines: list[str], name: str, where: str) -> tuple[int, int]:
    first = re.compile(rf"^(?![\s/*}}]).*(?<!\w){re.escape(name)}(?!\w)")
    starts = [number for number, line in enumerate(lines) if first.match(line)]
    if len(starts) != 1:
        raise SeriesError(
            f"{where}: {name} is defined {len(starts)} times: adapt it to the module's source"
        )
    (start,) = starts
    end = _end_of(lines, start)
    if lines[start - 1].rstrip().endswith("*/"):
        start -= 1
        while not lines[start].startswith("/*"):
            start -= 1
    return start, end


def _end_of(lines: list[str], start: int) -> int:
    """The number of the line after a definition."""
    depth = 0
    for number, line in enumerate(lines[start:], start):
        if lines[start].startswith("#"):
            if not line.endswith("\\\n"):
                return number + 1
            continue
        depth += sum(line.count(one) for one in "({") - sum(line.count(one) for one in ")}")
        if depth == 0 and line.rstrip().endswith((";", "}")):
            return number + 1
    raise SeriesError(f"no end of the definition that begins with: {lines[start]}")
