# SPDX-License-Identifier: MIT OR Apache-2.0
"""The reads and writes in the rows that `steady trace --csv` and `--json-lines` write.

A record has sums, and only its longest have a time and a place. A row has both, of each I/O.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from steady_lab.errors import LabError

OPTION = "--trace-rows"
OPERATIONS = ("read", "write")
KEYS = ("at_ns", "total_ns", "device", "op", "sector")
ABSENT = (None, "")  # in JSON, in CSV
NUMBER_MAX = (1 << 64) - 1


class TracedIo(NamedTuple):
    """A read or write: an I/O of a system call, or a request outside system calls."""

    at_ns: int
    total_ns: int
    device: str
    op: str
    sector: int  # the first, in units of 512 bytes


def read_traced_ios(path: Path) -> list[TracedIo]:
    """Return the reads and writes that have a sector; raises LabError for other content."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            return [io for line, row in _rows(file) if (io := _io_of(line, row))]
    except OSError as error:
        raise LabError(f"{OPTION} {path}: {error.strerror}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        remedy = "write it with `steady trace --csv FILE` or `--json-lines FILE`"
        raise LabError(f"{OPTION} {path}: {error}: {remedy}") from error


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    """Return rows with their lines. JSON lines begin with an object, CSV with names."""
    lines = iter(lines)
    first = next(lines, "")
    whole = chain([first], lines)
    is_json = first.startswith("{") or not first.strip()
    return _json_rows(whole) if is_json else _csv_rows(whole)


def _json_rows(lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            yield line, json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {line}: not JSON: {error}") from error


def _csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(lines)
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"line {reader.line_num}: more or fewer values than names")
        yield reader.line_num, row
    # A file without rows is read up to here, too.
    _check_keys(1, reader.fieldnames or ())


def _io_of(line: int, row: Any) -> TracedIo | None:
    """Return the read or write of a row; None if it is something else, or has no sector."""
    if not isinstance(row, dict):
        raise ValueError(f"line {line}: not an object")
    _check_keys(line, row)
    device, op = row["device"], row["op"]
    if op not in OPERATIONS or device in ABSENT or row["sector"] in ABSENT:
        return None
    if not isinstance(device, str):
        raise ValueError(f"line {line}: device is {_shown(device)}, not a name")
    at_ns, total_ns, sector = (_number(line, row, key) for key in ("at_ns", "total_ns", "sector"))
    return TracedIo(at_ns, total_ns, device, op, sector)


def _check_keys(line: int, keys: Iterable[str]) -> None:
    missing = [key for key in KEYS if key not in keys]
    if missing:
        raise ValueError(f"line {line}: has no {missing[0]}")


def _number(line: int, row: dict[str, Any], key: str) -> int:
    value = row[key]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    if type(value) is not int or not 0 <= value <= NUMBER_MAX:
        raise ValueError(f"line {line}: {key} is {_shown(value)}, not a whole number below 2^64")
    return value


def _shown(value: object) -> str:
    return f"{value!r:.40}"
