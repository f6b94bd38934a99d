# SPDX-License-Identifier: MIT OR Apache-2.0
"""Strict reading of one TOML table, or JSON object: every key is asked for by name, type and range.

Any other key is unknown and an error, so a misspelt key never means a default. Every error names
the file, the key, the value and the valid values.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from steady_lab.errors import SpecError

Read = TypeVar("Read")
Point = int | float | str | None
"""One value of a sweep; None stands for the only point of a workload without a sweep."""

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Names become file names and HTML ids, so they stay this plain."""


def load_toml(path: Path) -> dict[str, Any]:
    """Return the parsed file; raises SpecError when it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: not valid TOML: {error}") from error


class Table:
    """A table of a spec file, read key by key; `close` rejects the remaining keys."""

    def __init__(self, raw: dict[str, Any], where: str) -> None:
        """Take the parsed table; `where` (file, and key of the table) starts every error."""
        self.where = where
        self._raw = raw
        self._unread = dict.fromkeys(raw)

    def fail(self, key: str, allowed: str) -> SpecError:
        """Return the error for a wrong value of `key`; `allowed` describes the valid ones."""
        return SpecError(f"{self.where}: {key} = {self._raw.get(key)!r}: must be {allowed}")

    def has(self, key: str) -> bool:
        """Tell whether the table has the key, without reading it."""
        return key in self._raw

    def take(self, key: str, allowed: str) -> Any:
        """Return the raw value of a required key; raises SpecError when it is missing."""
        self._unread.pop(key, None)
        if key not in self._raw:
            raise SpecError(f"{self.where}: {key} is missing: must be {allowed}")
        return self._raw[key]

    def text(
        self,
        key: str,
        pattern: str | None = None,
        default: str | None = None,
        allowed: str | None = None,
    ) -> str:
        """Return a non-empty string, all of it matching `pattern` if one is given.

        `allowed` says in words what the pattern means.
        """
        if allowed is None:
            allowed = "a non-empty string" if pattern is None else f"a string like {pattern}"
        if default is not None and not self.has(key):
            return default
        value = self.take(key, allowed)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, allowed)
        if pattern is not None and not re.fullmatch(pattern, value):
            raise self.fail(key, allowed)
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """Return a string that is one of `choices`."""
        if default is not None and not self.has(key):
            return default
        allowed = "one of " + ", ".join(choices)
        value = self.take(key, allowed)
        if value not in choices:
            raise self.fail(key, allowed)
        return str(value)

    def number(self, key: str, low: float, high: float) -> float:
        """Return a finite number within low..high, both included."""
        allowed = f"a number from {low:g} to {high:g}"
        value = self.take(key, allowed)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(key, allowed)
        if not low <= value <= high:
            raise self.fail(key, allowed)
        return float(value)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number within low..high, both included."""
        if default is not None and not self.has(key):
            return default
        allowed = f"a whole number from {low} to {high}"
        value = self.take(key, allowed)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(key, allowed)
        return value

    def flag(self, key: str) -> bool:
        """Return a truth value."""
        value = self.take(key, "true or false")
        if not isinstance(value, bool):
            raise self.fail(key, "true or false")
        return value

    def or_null(self, key: str, read: Callable[[str], Read]) -> Read | None:
        """Return what `read` makes of a required key; None for a null, which only JSON has."""
        return None if self.take(key, "given, if only as null") is None else read(key)

    def point(self, key: str, points: tuple[Point, ...]) -> Point:
        """Return one of the workload's points; a workload without a sweep has no such key."""
        if points == (None,):
            if self.has(key):
                raise self.fail(key, "left out: the workload has no sweep")
            return None
        allowed = "one of the sweep's values " + ", ".join(map(str, points))
        value = self.take(key, allowed)
        if isinstance(value, bool) or value not in points:
            raise self.fail(key, allowed)
        return points[points.index(value)]

    def items(self, key: str, allowed: str) -> list[Any]:
        """Return a non-empty array; its items are the caller's to check."""
        value = self.take(key, allowed)
        if not isinstance(value, list) or not value:
            raise self.fail(key, allowed)
        return value

    def table(self, key: str, default: dict[str, Any] | None = None) -> Table:
        """Return a sub-table, required unless there is a default."""
        given = default is None or self.has(key)
        value = self.take(key, f"a table [{key}]") if given else default
        if not isinstance(value, dict):
            raise self.fail(key, f"a table [{key}]")
        return Table(value, f"{self.where}: [{key}]")

    def tables(self, key: str) -> list[Table]:
        """Return an array of tables, empty when the key is missing."""
        if not self.has(key):
            return []
        value = self.take(key, f"tables [[{key}]]")
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fail(key, f"tables [[{key}]]")
        return [Table(item, f"{self.where}: [[{key}]] {n}") for n, item in enumerate(value, 1)]

    def close(self) -> None:
        """Reject keys that were not read; raises SpecError naming the first of them."""
        for key in self._unread:
            known = ", ".join(sorted(set(self._raw) - set(self._unread))) or "none"
            raise SpecError(
                f"{self.where}: {key} = {self._raw[key]!r}: unknown key (read here: {known})"
            )
