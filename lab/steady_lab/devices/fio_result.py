# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of fio, `--output-format=json`: the jobs that time single requests of a disk.

A job is left out, with the reason, if it has several requests in flight, if the page cache answers
it, or if it waits for more than the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steady_lab.errors import SpecError
from steady_lab.toml_table import Table

PATTERNS = {
    "read": ("read", False),
    "write": ("write", False),
    "randread": ("read", True),
    "randwrite": ("write", True),
}
# One request at a time, whatever iodepth says.
SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")
ENGINE_DEFAULT = "psync"  # of fio on Linux
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
KIB_MAX = 65536
RATE_MAX = 1e9
NS_MAX = 1e15
MEDIAN = 50.0


@dataclass(frozen=True)
class Timed:
    """What one job measured; `us` has times by percentile."""

    where: str
    op: str
    random: bool
    kib: int
    per_second: float
    samples: int
    us: dict[float, float]

    @property
    def median_us(self) -> float:
        """Time of a usual request."""
        return self.us[MEDIAN]


@dataclass(frozen=True)
class FioResult:
    """The jobs of a result that are of use, and why the others are not."""

    version: str
    disks: list[str]
    timed: list[Timed]
    left_out: list[str]


class _Options:
    """Options of a job; what it does not set is global, or fio's default."""

    def __init__(self, *tables: Table) -> None:
        self._tables = tables

    def get(self, key: str, default: str) -> str:
        """Return an option as text."""
        for table in self._tables:
            if table.has(key):
                return str(table.take(key, "an option"))
        return default


def _size_kib(text: str) -> int:
    """Return a block size in KiB; 0 if it is none, or several."""
    found = re.fullmatch(r"(\d+)([kmg]?)(?:i?b)?", text.strip().lower())
    size = int(found[1]) * UNITS[found[2]] if found else 0
    return 0 if size % 1024 else size // 1024


# Option, fio's default, which values are of use, and these in words.
NEEDED: tuple[tuple[str, str, Callable[[str], bool], str], ...] = (
    ("rw", "read", PATTERNS.__contains__, f"one of {', '.join(PATTERNS)}"),
    *(
        (key, "none", "none".__eq__, "left out, or sizes are mixed")
        for key in ("bsrange", "bssplit")
    ),
    ("bs", "4k", lambda text: 0 < _size_kib(text) <= KIB_MAX, f"one size of 1 to {KIB_MAX} KiB"),
    ("direct", "0", lambda text: text != "0", "1, or the page cache answers"),
    ("numjobs", "1", "1".__eq__, "1, or requests wait for each other"),
    *((key, "0", "0".__eq__, "0, or flushes count as writes") for key in ("fsync", "fdatasync")),
    ("sync", "0", ("0", "none").__contains__, "0, or flushes count as writes"),
    *((key, "0", "0".__eq__, "0, or the rate is not the disk's") for key in ("rate", "rate_iops")),
    ("thinktime", "0", "0".__eq__, "0, or the rate is not the disk's"),
)


def _why_not(options: _Options) -> str:
    for key, default, good, words in NEEDED:
        text = options.get(key, default)
        if not good(text):
            return f"{key} = {text}: must be {words}"
    depth = options.get("iodepth", "1")
    if depth != "1" and options.get("ioengine", ENGINE_DEFAULT) not in SYNCHRONOUS:
        return f"iodepth = {depth}: must be 1, or requests wait for each other"
    return ""


def json_start(text: str) -> int | None:
    """Return where the JSON of a file begins, behind what fio warns of; None in TOML."""
    found = re.search(r"^\{", text, re.MULTILINE)
    return found.start() if found else None


def parse_fio(text: str, start: int, where: str) -> FioResult:
    """Read fio's JSON; `where` starts the text of a SpecError."""
    try:
        raw: dict[str, Any] = json.JSONDecoder().raw_decode(text, start)[0]
    except json.JSONDecodeError as error:
        raise SpecError(f"{where}: not valid JSON: {error}") from error
    result = Table(raw, where)
    version = result.text("fio version")
    shared = result.table("global options", {})
    timed, left_out = [], []
    result.items("jobs", "the jobs of fio --output-format=json")
    for number, job in enumerate(result.tables("jobs"), 1):
        name = f"jobs {number} ({job.text('jobname')})"
        options = _Options(job.table("job options", {}), shared)
        why = _why_not(options)
        if why:
            left_out.append(f"{name}: {why}")
        else:
            timed.append(_timed(job, name, options))
    disks = [disk.text("name") for disk in result.tables("disk_util")]
    return FioResult(version, disks, timed, left_out)


def _timed(job: Table, name: str, options: _Options) -> Timed:
    op, random = PATTERNS[options.get("rw", "read")]
    measured = job.table(op)
    clat = measured.table("clat_ns")
    percentiles = clat.take("percentile", "given: fio 3 with clat_percentiles=1")
    if not isinstance(percentiles, dict):
        raise clat.fail("percentile", "a table of times by percentile")
    times = Table(percentiles, f"{clat.where}: percentile")
    # With an asynchronous engine the submission is no part of clat.
    slat_ns = measured.table("slat_ns", {"mean": 0}).number("mean", 0, NS_MAX)
    us = {
        _percentile(times, key): (times.number(key, 0, NS_MAX) + slat_ns) / 1000
        for key in percentiles
    }
    if not us.get(MEDIAN):
        raise times.fail("50.000000", "above 0: a percentile_list must have 50")
    return Timed(
        where=name,
        op=op,
        random=random,
        kib=_size_kib(options.get("bs", "4k")),
        per_second=measured.number("iops", 1e-6, RATE_MAX),
        samples=measured.integer("total_ios", 1, int(RATE_MAX)),
        us=us,
    )


def _percentile(times: Table, key: str) -> float:
    try:
        return float(key)
    except ValueError:
        raise times.fail(key, "named by a number such as 99.000000") from None
