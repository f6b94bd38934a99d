# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device specs: experiments/devices/NAME.toml -> parameters of an emulated device.

A spec says everything about a device; what it leaves out has the default stated here, and every
parameter is passed on, so the module's own defaults never matter. docs/devices.md lists the keys.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steady_lab.errors import SpecError
from steady_lab.paths import GUEST_WORK

SCHEMA = "steadyio.device/1"
FAULTS_MAX = 8

_SECOND_NS = 1_000_000_000
_PER_KIB_NS_MAX = 10_000_000
_U64_MAX = 2**64 - 1


@dataclass(frozen=True)
class Number:
    """One integer of a spec: `table.key` in TOML, `param` of the kernel module."""

    table: str
    key: str
    param: str
    low: int
    high: int
    default: int | None  # None: the spec must give it
    unit: str
    meaning: str

    @property
    def name(self) -> str:
        """The key as errors and the documentation name it."""
        return f"{self.table}.{self.key}"


def _costs(table: str, low_base_default: int | None, note: str) -> tuple[Number, ...]:
    return (
        Number(table, "base_ns", f"{table}_base_ns", 0, _SECOND_NS, low_base_default, "ns",
               f"time of any {note}"),
        Number(table, "per_kib_ns", f"{table}_per_kib_ns", 0, _PER_KIB_NS_MAX,
               low_base_default and 0, "ns/KiB", "time added per KiB"),
    )  # fmt: skip


def _jump_slow_jitter(table: str) -> tuple[Number, ...]:
    return (
        Number(table, "jump_ns", f"{table}_jump_ns", 0, _SECOND_NS, 0, "ns",
               "time added unless it continues where the last read or write ended"),
        Number(table, "slow_ns", f"{table}_slow_ns", 0, _SECOND_NS, 0, "ns",
               "time added in a slow episode"),
        Number(table, "jitter_ns", f"{table}_jitter_ns", 0, _SECOND_NS, 0, "ns",
               "uniform in +- this; at most base_ns"),
    )  # fmt: skip


NUMBERS: tuple[Number, ...] = (
    Number("card", "capacity_mib", "capacity_mib", 1, 1024 * 1024, None, "MiB", "size"),
    Number("card", "seed", "seed", 0, _U64_MAX, 1, "", "of jitter, episodes and random faults"),
    Number("card", "units", "units", 1, 16, 1, "", "flash units that work in parallel"),
    Number("card", "stripe_kib", "stripe_kib", 1, 1024, 16, "KiB",
           "consecutive data on one unit"),
    Number("card", "bus_per_kib_ns", "bus_per_kib_ns", 0, _PER_KIB_NS_MAX, 0, "ns/KiB",
           "time on the bus that all units share"),
    Number("card", "status_ns", "status_ns", 0, _SECOND_NS, 0, "ns",
           "CMD13, which the kernel sends after every write"),
    Number("queue", "depth", "queue_depth", 0, 32, 0, "", "command queue; 0: none, else 3..32"),
    *_costs("read", None, "read"),
    *_jump_slow_jitter("read"),
    *_costs("write", None, "write that reaches the flash"),
    *_jump_slow_jitter("write"),
    Number("write", "pause_kib", "write_pause_kib", 0, 1024 * 1024, 0, "KiB",
           "a write waits each time this much more is written; 0: never"),
    Number("write", "pause_ns", "write_pause_ns", 0, _SECOND_NS, 0, "ns", "length of that wait"),
    *_costs("erase", 1_000_000, "erase, trim or discard"),
    Number("flush", "base_ns", "flush_base_ns", 0, _SECOND_NS, 200_000, "ns",
           "time of a flush, next to writing what is cached"),
    Number("slow", "period_us", "slow_period_us", 0, 1_000_000_000, 0, "us",
           "one slow episode in each period; 0: none"),
    Number("slow", "length_us", "slow_length_us", 0, 1_000_000_000, 0, "us",
           "of an episode; at most 3/4 of the period"),
    Number("cache", "kib", "cache_kib", 0, 65536, 0, "KiB", "volatile write cache; 0: none"),
    Number("cache", "base_ns", "cache_base_ns", 0, _SECOND_NS, 20_000, "ns",
           "time of a write the cache accepts"),
    Number("cache", "per_kib_ns", "cache_per_kib_ns", 0, _PER_KIB_NS_MAX, 4_000, "ns/KiB",
           "time added per KiB"),
    Number("power", "cut_after_writes", "power_cut_after_writes", 0, _U64_MAX, 0, "",
           "cut power when this many writes are acknowledged; 0: never"),
)  # fmt: skip

_TEXTS = {"schema", "name", "title", "source", "module"}
_FAULT_OPS = ("read", "write", "erase", "flush", "any")
_FAULT_OUTCOMES = ("error", "timeout")
_TABLE_KEYS: dict[str, set[str]] = {"backing": {"kind", "file"}, "card": {"product"}}
for _number in NUMBERS:
    _TABLE_KEYS.setdefault(_number.table, set()).add(_number.key)


@dataclass(frozen=True)
class DeviceSpec:
    """A checked spec. `values` maps module parameters to numbers, defaults filled in.

    `write_log`, which no spec gives, is a file in the work folder for the card's write log.
    """

    name: str
    title: str
    source: str
    module: str
    product: str
    values: dict[str, int]
    backing_file: str | None
    faults: tuple[str, ...]
    raw: dict[str, Any] = field(repr=False)
    write_log: str | None = None

    @property
    def node(self) -> str:
        """Block device in the guest. It appears some milliseconds after the module is loaded."""
        return "/dev/mmcblk0"

    def module_params(self) -> list[str]:
        """`key=value` words for insmod, always in the same order."""
        params = [f"{number.param}={self.values[number.param]}" for number in NUMBERS]
        params.append(f"name={self.product}")
        if self.backing_file is not None:
            params.append(f"path={GUEST_WORK}/{self.backing_file}")
        if self.write_log is not None:
            params.append(f"write_log={GUEST_WORK}/{self.write_log}")
        if self.faults:
            params.append(f"fault={','.join(self.faults)}")
        return params


def load_device(path: Path) -> DeviceSpec:
    """Reads and checks a device spec. Raises SpecError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: not TOML: {error}") from error
    try:
        return parse_device(raw)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None


def parse_device(raw: dict[str, Any]) -> DeviceSpec:
    """Checks what a device spec's TOML holds. Raises SpecError."""
    _refuse_unknown("", raw, _TEXTS | set(_TABLE_KEYS) | {"fault"})
    if raw.get("schema") != SCHEMA:
        raise SpecError(f"schema = {raw.get('schema')!r}: must be {SCHEMA!r}")
    tables = {table: _table(raw, table) for table in _TABLE_KEYS}
    values = {number.param: _integer(tables, number) for number in NUMBERS}
    _check_relations(values)
    return DeviceSpec(
        name=_text(raw, "name", r"[a-z0-9][a-z0-9-]*", "lower case letters, digits and '-'"),
        title=_text(raw, "title", r"\S.*", "some text"),
        source=_text(raw, "source", r"(?s)\S.*", "some text"),
        module=_text({"module": "steady_emmc"} | raw, "module", "steady_emmc", "'steady_emmc'"),
        product=_text({"product": "STEADY"} | tables["card"], "product", r"[!-~]{1,6}",
                      "1 to 6 printable characters without spaces", "card."),
        values=values,
        backing_file=_backing_file(tables["backing"]),
        faults=_faults(raw.get("fault", [])),
        raw=raw,
    )  # fmt: skip


def _refuse_unknown(prefix: str, found: dict[str, Any], allowed: set[str]) -> None:
    for key in found:
        if key not in allowed:
            raise SpecError(f"{prefix}{key}: unknown key; known: {', '.join(sorted(allowed))}")


def _table(raw: dict[str, Any], table: str) -> dict[str, Any]:
    found = raw.get(table, {})
    if not isinstance(found, dict):
        raise SpecError(f"{table} = {found!r}: must be a table")
    _refuse_unknown(f"{table}.", found, _TABLE_KEYS[table])
    return found


def _integer(tables: dict[str, dict[str, Any]], number: Number) -> int:
    value = tables[number.table].get(number.key, number.default)
    if value is None:
        raise SpecError(f"{number.name}: missing; must be {number.low}..{number.high}")
    return _in_range(number.name, value, number.low, number.high)


def _in_range(name: str, value: Any, low: int, high: int) -> int:
    # bool is an int in Python, but `true` is no number in TOML.
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(f"{name} = {value!r}: must be a whole number in {low}..{high}")
    return value


def _check_relations(values: dict[str, int]) -> None:
    if values["queue_depth"] in (1, 2):
        # The MMC core leaves shorter queues unused.
        raise SpecError(f"queue.depth = {values['queue_depth']}: must be 0 or 3..32")
    for op in ("read", "write"):
        _in_range(f"{op}.jitter_ns", values[f"{op}_jitter_ns"], 0, values[f"{op}_base_ns"])
    _in_range("slow.length_us", values["slow_length_us"], 0, values["slow_period_us"] // 4 * 3)


def _text(found: dict[str, Any], key: str, pattern: str, allowed: str, prefix: str = "") -> str:
    value = found.get(key)
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise SpecError(f"{prefix}{key} = {value!r}: must be {allowed}")
    return value


def _backing_file(backing: dict[str, Any]) -> str | None:
    kind = backing.get("kind", "memory")
    if kind not in ("memory", "file"):
        raise SpecError(f"backing.kind = {kind!r}: must be 'memory' or 'file'")
    if kind == "memory":
        if "file" in backing:
            raise SpecError("backing.file: only with backing.kind = 'file'")
        return None
    return _text(backing, "file", r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
                 "a file name in the work folder (letters, digits, '_', '-', '.')",
                 "backing.")  # fmt: skip


def _faults(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or len(found) > FAULTS_MAX:
        raise SpecError(f"fault = {found!r}: must be at most {FAULTS_MAX} [[fault]] tables")
    return tuple(_fault(f"fault[{index}].", fault) for index, fault in enumerate(found))


def _fault(prefix: str, fault: Any) -> str:
    if not isinstance(fault, dict):
        raise SpecError(f"{prefix[:-1]} = {fault!r}: must be a table")
    _refuse_unknown(prefix, fault, {"on", "outcome", "at_op", "sectors", "ppm"})
    for key, allowed in (("on", _FAULT_OPS), ("outcome", _FAULT_OUTCOMES)):
        if fault.get(key) not in allowed:
            raise SpecError(f"{prefix}{key} = {fault.get(key)!r}: must be one of {allowed}")
    when = [key for key in ("at_op", "sectors", "ppm") if key in fault]
    if len(when) != 1:
        raise SpecError(f"{prefix[:-1]}: needs exactly one of at_op, sectors, ppm")
    return f"{fault['on']}:{fault['outcome']}:{_fault_when(prefix, when[0], fault[when[0]])}"


def _fault_when(prefix: str, key: str, value: Any) -> str:
    if key == "at_op":
        return f"op:{_in_range(prefix + key, value, 1, 2**63 - 1)}"
    if key == "ppm":
        return f"ppm:{_in_range(prefix + key, value, 0, 1_000_000)}"
    if not isinstance(value, list) or len(value) != 2:
        raise SpecError(f"{prefix}{key} = {value!r}: must be [first, last]")
    last = _in_range(f"{prefix}{key}[1]", value[1], 0, 2**63 - 1)
    first = _in_range(f"{prefix}{key}[0]", value[0], 0, last)
    return f"sectors:{first}-{last}"
