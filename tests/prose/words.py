# SPDX-License-Identifier: MIT OR Apache-2.0
"""Comments and messages of source files, as paragraphs of Markdown. Called by prose.py."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LIKE_C = (".rs", ".c", ".h", ".cpp", ".hpp")
# A literal with fewer words is a name or a value.
WORDS_MIN = 3
C_TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/)
    |(?P<line>//[^\n]*)
    |\br(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    |"(?P<string>(?:\\.|[^"\\])*)"
    |'(?:\\.[^'\n]*|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
SHELL_TOKEN = re.compile(
    r"""(?P<line>(?:^|(?<=\s))\#[^\n]*)|"(?P<string>(?:\\.|[^"\\])*)"|'(?P<raw>[^']*)'""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
CONTINUED = re.compile(r"\\\n\s*")
MARKERS = re.compile(r"^\s*(?:/{2,3}!?|/?\*+/?|#+!?)\s?|\s*\*+/\s*$")
SPDX = re.compile(r"SPDX-License-Identifier|^\s*#!/|shellcheck|noqa|fmt: skip|type: ignore")


@dataclass(frozen=True)
class Part:
    """A paragraph, and the line of the file that it begins at."""

    line: int
    text: str
    is_behind_code: bool = False


def parts_of(path: str, text: str, *, messages: bool) -> Iterator[Part]:
    """Yield the comments of a file, and with `messages` its string literals that are sentences."""
    if path.endswith(".py"):
        found = _python(text)
    else:
        found = _tokens(C_TOKEN if path.endswith(LIKE_C) else SHELL_TOKEN, text)
    comments: list[Part] = []
    literals: list[Part] = []
    for kind, part in found:
        (comments if kind == "comment" else literals).append(part)
    yield from _joined(comments)
    if messages:
        yield from (part for part in literals if _is_sentence(part.text))


def _tokens(token: re.Pattern[str], text: str) -> Iterator[tuple[str, Part]]:
    for match in token.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found = match.groupdict()
        comment = found.get("block") or found.get("line")
        literal = found.get("raw") or found.get("string")
        if comment:
            before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            yield "comment", Part(line, comment, bool(before.strip()))
        elif literal:
            yield "literal", Part(line, CONTINUED.sub("", literal).replace("\\n", " "))


def _python(text: str) -> Iterator[tuple[str, Part]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            before = token.line[: token.start[1]]
            yield "comment", Part(token.start[0], token.string, bool(before.strip()))
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            kind = "comment" if node in docstrings else "literal"
            yield kind, Part(node.lineno, node.value)


def _joined(comments: Iterable[Part]) -> Iterator[Part]:
    """Yield comments without their markers; those on lines that follow each other are one.

    A comment behind code is one by itself.
    """
    lines: list[str] = []
    start = 0
    for part in comments:
        own = ["" if SPDX.search(line) else line for line in part.text.splitlines()]
        own = [MARKERS.sub("", line).strip() for line in own]
        if lines and (part.is_behind_code or part.line != start + len(lines)):
            yield Part(start, "\n".join(lines))
            lines = []
        if part.is_behind_code:
            yield Part(part.line, "\n".join(own))
            continue
        start = start if lines else part.line
        lines += own
    if lines:
        yield Part(start, "\n".join(lines))


def _is_sentence(text: str) -> bool:
    return "\n" not in text.strip() and len(re.findall(r"\b[A-Za-z]{2,}\b", text)) >= WORDS_MIN
