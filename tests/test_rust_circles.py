# SPDX-License-Identifier: MIT OR Apache-2.0
"""Modules of a crate import each other in no circle.

An edge is a path to an item of another module outside of tests, in a `use` or without one. `mod`
does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from steady_lab.paths import PROJECT

pytestmark = pytest.mark.reads("device")

CRATES = sorted(path.parent.name for path in (PROJECT / "device").glob("*/src"))
USE = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?use ([^;]+);", re.MULTILINE)
TESTS = re.compile(
    r"^#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\(crate\))? )?mod \w+ \{.*",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"//[^\n]*")
# An attribute or a visibility names a module that it does not use.
NO_PATH = re.compile(r"#!?\[[^\]]*\]|pub\(in [^)]*\)")
PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
Module = tuple[str, ...]  # its path in the crate; () is the root


def modules(crate: str) -> dict[Module, str]:
    """The text of each module that has a file, without its tests and comments."""
    source = PROJECT / "device" / crate / "src"
    found: dict[Module, str] = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] in ("mod", "lib", "main"):
            parts = parts[:-1]
        text = TESTS.sub("", path.read_text(encoding="utf-8"))
        found[parts] = found.get(parts, "") + COMMENT.sub("", text)
    return found


def paths_in(tree: str) -> Iterator[Module]:
    """Each path that a tree of `use` names: `a::{b, c::D}` gives a::b and a::c::D."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield tuple(part.split(" as ")[0].strip() for part in head.split("::"))
        return
    before = tuple(part.strip() for part in head.split("::") if part.strip())
    for one in split_list(rest.rpartition("}")[0]):
        for path in paths_in(one):
            yield (*before, *path)


def split_list(text: str) -> Iterator[str]:
    """Split at the commas outside of braces."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def target(path: Module, module: Module, known: set[Module]) -> Module | None:
    """The module of the crate that a path names, None for another crate's."""
    base = module
    if path[0] == "crate":
        base, path = (), path[1:]
    elif path[0] in ("self", "super"):
        while path and path[0] in ("self", "super"):
            base = base[:-1] if path[0] == "super" else base
            path = path[1:]
    elif (*module, path[0]) not in known:
        return None
    full = (*base, *path)
    return next(full[:n] for n in range(len(full), -1, -1) if full[:n] in known)


def paths(text: str) -> Iterator[Module]:
    """Each path in the text of a module."""
    for use in USE.findall(text):
        yield from paths_in(use)
    for path in PATH.findall(NO_PATH.sub("", USE.sub("", text))):
        yield tuple(path.split("::"))


def imports(crate: str) -> dict[Module, set[Module]]:
    """Which modules each one uses."""
    texts = modules(crate)
    known = set(texts)
    return {
        module: {
            found
            for path in paths(text)
            if (found := target(path, module, known)) is not None and found != module
        }
        for module, text in texts.items()
    }


def reached(start: Module, edges: dict[Module, set[Module]]) -> set[Module]:
    found: set[Module] = set()
    waiting = [start]
    while waiting:
        for each in edges[waiting.pop()] - found:
            found.add(each)
            waiting.append(each)
    return found


def in_circles(edges: dict[Module, set[Module]]) -> set[str]:
    """The modules that use themselves, by way of others."""
    return {"::".join(each) or "crate" for each in edges if each in reached(each, edges)}


@pytest.mark.parametrize("crate", CRATES)
def test_no_modules_import_each_other_in_a_circle(crate: str) -> None:
    assert in_circles(imports(crate)) == set()


def test_a_circle_through_another_module_is_found() -> None:
    edges: dict[Module, set[Module]] = {
        ("a",): {("b",)},
        ("b",): {("c",)},
        ("c",): {("a",)},
        ("d",): {("a",)},
    }
    assert in_circles(edges) == {"a", "b", "c"}


def test_a_tree_of_use_names_each_path() -> None:
    found = list(paths_in("crate::{a::{B, c::D as E}, f}"))
    assert found == [("crate", "a", "B"), ("crate", "a", "c", "D"), ("crate", "f")]


def test_tests_are_left_out_whatever_attributes_they_have() -> None:
    tests = "#[cfg(test)]\n#[allow(clippy::unwrap_used)]\nmod tests {\n    use super::*;\n}\n"
    assert TESTS.sub("", "use a::b;\n" + tests) == "use a::b;\n"


def test_a_path_without_use_counts_and_a_visibility_does_not() -> None:
    text = "use a::b;\npub(in crate::c) fn d() -> crate::e::F {\n    super::g::h()\n}\n"
    assert list(paths(text)) == [("a", "b"), ("crate", "e", "F"), ("super", "g", "h")]
