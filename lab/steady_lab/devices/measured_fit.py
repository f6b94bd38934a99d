# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fit the emulated card to one user's measurement: fio's JSON, or a profile of `steady probe`.

Medians of two sizes give the time of a command and of a KiB, random requests next to sequential
ones the jump. Pauses follow from a high percentile of writes (how long) and from the rate (how
often). What a measurement leaves open is assumed, and said. Times are in us.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steady_lab.devices.emmc import EMMC
from steady_lab.devices.fio_result import FioResult, Timed, json_start, parse_fio
from steady_lab.devices.spec import PROFILE_SCHEMA, DeviceSpec, parse_device
from steady_lab.devices.transfer_fit import KIB_MAX, OPS
from steady_lab.errors import SpecError
from steady_lab.toml_table import Table, load_toml

CAPACITY_MIB = 16384
TAILS = (99.0, 99.5, 99.9, 99.95, 99.99)
COMPARED = (50.0, 99.0, 99.9)
# A percentile with fewer requests beyond it says little, and one this near to the median is jitter.
BEYOND_MIN = 5
TAIL_MIN = 1.2
PAUSE_KIB_MAX = 1 << 20
ROUND_NS = 100
COPIED = ("capacity_mib", "erase_base_ns", "erase_per_kib_ns", "flush_base_ns")


@dataclass(frozen=True)
class Line:
    """Times of one direction."""

    base: float
    per_kib: float
    jump: float
    pause: float = 0.0
    pause_kib: float = math.inf

    def usual(self, timed: Timed) -> float:
        """Return the time of a request of a job, without pauses."""
        commands = -(-timed.kib // KIB_MAX)
        return commands * self.base + timed.kib * self.per_kib + timed.random * self.jump

    def mean(self, timed: Timed) -> float:
        """Return the mean time of a request of a job."""
        return self.usual(timed) + timed.kib / self.pause_kib * self.pause

    def at(self, timed: Timed, percentile: float) -> float:
        """Return a percentile of the times of a job's requests."""
        often = timed.kib / self.pause_kib
        whole = math.floor(often)
        more = often - whole >= 1 - percentile / 100
        return self.usual(timed) + (whole + more) * self.pause


@dataclass
class Notes:
    """What a fit used, did not use, cannot know and assumed; and how near it is."""

    used: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    not_known: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return all of it as text."""
        named = (
            ("used", self.used),
            ("left out", self.left_out),
            ("not known", self.not_known),
            ("assumed", self.assumed),
            ("fit", self.errors),
        )
        return [f"{name}: {text}" for name, texts in named for text in texts]


@dataclass(frozen=True)
class Fit:
    """A card that behaves as measured."""

    source: str
    product: str
    values: dict[str, int]
    notes: Notes


def fit_file(path: Path, base: DeviceSpec | None) -> Fit:
    """Fit a card to a file. `base` has what the file leaves open. Raises SpecError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    if base is not None and base.kind is not EMMC:
        raise SpecError(f"--device {base.name}: must be of kind {EMMC.name}, which is fitted")
    start = json_start(text)
    if start is not None:
        return _fit_fio(parse_fio(text, start, str(path)), path, base)
    return _from_profile(load_toml(path), path)


def _from_profile(raw: dict[str, Any], path: Path) -> Fit:
    Table(raw, str(path)).choice("schema", (PROFILE_SCHEMA,))
    card = parse_device(raw, str(path))
    tables = {number.table for number in card.kind.numbers}
    notes = Notes(used=[f"[{name}]: all keys" for name in raw if name in tables])
    for op in OPS:
        seen = raw.get("seen", {}).get(op, {})
        if seen.get("beyond_count"):
            notes.not_known.append(
                f"seen.{op}.beyond_count = {seen['beyond_count']}: the times do not explain so many"
            )
        if "seconds" in seen:
            notes.not_known.append(
                f"seen.{op}.seconds = {seen['seconds']}: what comes less often was not met"
            )
    notes.assumed.append("no runs of writes, rare stalls or heat: a probe does not look for them")
    product = str(raw["card"].get("product", "STEADY"))
    return Fit(f"{card.source}: {card.title}", product, card.values, notes)


def _fit_fio(result: FioResult, path: Path, base: DeviceSpec | None) -> Fit:
    notes = Notes(left_out=result.left_out)
    values = {n.param: n.default for n in EMMC.numbers if n.default is not None}
    values["capacity_mib"] = CAPACITY_MIB
    if base is not None:
        values |= {param: base.values[param] for param in COPIED}
        notes.assumed.append(f"[erase], [flush] and card.capacity_mib: those of {base.name}")
    else:
        notes.assumed.append(f"card.capacity_mib = {CAPACITY_MIB}; [erase] and [flush]: defaults")
    notes.assumed.append("no queue, cache, units, slow episodes, stalls or heat")
    others = [disk for disk in result.disks if not disk.startswith("mmcblk")]
    notes.assumed += [f"a card stands in for {disk}" for disk in others]
    for op in OPS:
        timed = [one for one in result.timed if one.op == op]
        if len({one.kib for one in timed}) >= 2:
            values |= _fit_op(op, timed, path, notes)
        elif base is not None:
            values |= {p: v for p, v in base.values.items() if p.startswith(f"{op}_")}
            notes.assumed.append(f"[{op}]: that of {base.name}")
        else:
            raise _too_few(op, timed, result.left_out, path)
    return Fit(f"{path.name}: {result.version}", "FITTED", values, notes)


def _too_few(op: str, timed: list[Timed], left_out: list[str], path: Path) -> SpecError:
    used = ", ".join(f"{one.where} of {one.kib} KiB" for one in timed) or "none"
    more = "".join(f"\n  {text}" for text in left_out)
    return SpecError(
        f"{path}: jobs: {op}s must be of two sizes, such as bs=4k and bs=1m; of use: {used}; or "
        f"take [{op}] from a card with --device. Left out: {more or 'none'}"
    )


def _fit_op(op: str, timed: list[Timed], path: Path, notes: Notes) -> dict[str, int]:
    """Return the parameters of one direction."""
    line, has_jump = _line(op, timed, path)
    if op == "write":
        line = _with_pauses(line, timed)
    if not has_jump:
        notes.assumed.append(f"{op}.jump_ns = 0: the sizes of random and sequential jobs differ")
    for one in timed:
        notes.used.append(f"{one.where}: {op}.iops, {op}.clat_ns.percentile, {op}.slat_ns.mean")
        notes.errors += _errors(one, line)
    fewest = min(one.samples for one in timed)
    notes.not_known.append(f"{op}s that are rarer than one in {fewest}")
    if op == "read":
        notes.not_known.append("why some reads take longer: the model has no pauses of reads")
    found = {
        f"{op}_base_ns": _ns(line.base),
        f"{op}_per_kib_ns": _ns(line.per_kib),
        f"{op}_jump_ns": _ns(line.jump),
        f"{op}_jitter_ns": _ns(min(_jitter(timed), line.base)),
    }
    if line.pause:
        found |= {"write_pause_ns": _ns(line.pause), "write_pause_kib": round(line.pause_kib)}
    return found


def _ns(us: float) -> int:
    # Below this a KiB of a fast card would lose digits.
    return round(us * 1000) if us < 100 else round(us * 1000 / ROUND_NS) * ROUND_NS


def _line(op: str, timed: list[Timed], path: Path) -> tuple[Line, bool]:
    """Least squares of relative errors of the medians, and whether the jump is part of it."""
    # Here, because numpy does not run on the oldest x86-64 processors.
    import numpy as np

    rows = np.array([[-(-one.kib // KIB_MAX), one.kib, one.random] for one in timed], dtype=float)
    rows /= np.array([[one.median_us] for one in timed])
    for columns in (3, 2):
        part = rows[:, :columns]
        if np.linalg.matrix_rank(part) < columns:
            continue
        found = np.linalg.lstsq(part, np.ones(len(timed)), rcond=None)[0]
        if (found >= 0).all():
            base, per_kib, *jump = map(float, found)
            return Line(base, per_kib, *(jump or [0.0])), bool(jump)
    medians = ", ".join(f"{one.where}: {one.median_us:.0f} us" for one in timed)
    raise SpecError(f"{path}: jobs: {op}: medians must grow with the size: {medians}")


def _jitter(timed: list[Timed]) -> float:
    """Return half of the width of the times of the smallest requests; 0 if that is not known."""
    smallest = min(timed, key=lambda one: one.kib)
    low, high = smallest.us.get(10.0), smallest.us.get(90.0)
    # 80 % of a uniform distribution.
    return (high - low) / 1.6 if low is not None and high is not None else 0.0


def _with_pauses(line: Line, timed: list[Timed]) -> Line:
    """Return the line with the pauses that are nearest to rates and percentiles, if any are."""
    return min((line, *_candidates(line, timed)), key=lambda one: _error(one, timed))


def _candidates(line: Line, timed: list[Timed]) -> Iterator[Line]:
    for one in timed:
        usual = line.usual(one)
        for percentile in TAILS:
            beyond = 1 - percentile / 100
            tail = one.us.get(percentile, 0.0)
            if one.samples * beyond < BEYOND_MIN or tail < TAIL_MIN * usual:
                continue
            pause = tail - usual
            share = (1e6 / one.per_second - usual) / pause
            # A percentile shows what at least so many meet.
            kib = one.kib / min(max(share, beyond), 1.0)
            yield Line(line.base, line.per_kib, line.jump, pause, min(kib, PAUSE_KIB_MAX))


def _error(line: Line, timed: list[Timed]) -> float:
    total = 0.0
    for one in timed:
        pairs = [(line.mean(one), 1e6 / one.per_second)]
        pairs += [(line.at(one, p), one.us[p]) for p in COMPARED if p in one.us]
        total += sum(math.log(model / measured) ** 2 for model, measured in pairs)
    return total


def _errors(timed: Timed, line: Line) -> Iterator[str]:
    rate = 1e6 / line.mean(timed)
    yield _error_text(timed.where, "per second", timed.per_second, rate)
    for percentile in COMPARED:
        if percentile in timed.us:
            model = line.at(timed, percentile)
            yield _error_text(timed.where, f"p{percentile:g} us", timed.us[percentile], model)


def _error_text(where: str, what: str, measured: float, model: float) -> str:
    return f"{where}: {what} {measured:.0f}, model {model:.0f} ({model / measured - 1:+.0%})"
