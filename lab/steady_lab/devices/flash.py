# SPDX-License-Identifier: MIT OR Apache-2.0
"""Managed flash: the keys of all specs whose timing is lab/devices/flash/flash_model.c, and the
module parameters of lab/devices/flash/card_params.c.
"""

from __future__ import annotations

from collections.abc import Mapping

from steady_lab.devices.faults import take_faults
from steady_lab.devices.kind import Number
from steady_lab.toml_table import Table

# 10 minutes, as in profiles: SD cards pause for seconds.
TIME_NS_MAX = 600_000_000_000
_PER_KIB_NS_MAX = 10_000_000
U64_MAX = 2**64 - 1


def costs(table: str, low_base_default: int | None, note: str) -> tuple[Number, ...]:
    """The time of one operation; `note` says which."""
    return (
        Number(table, "base_ns", f"{table}_base_ns", 0, TIME_NS_MAX, low_base_default, "ns",
               f"time of any {note}"),
        Number(table, "per_kib_ns", f"{table}_per_kib_ns", 0, _PER_KIB_NS_MAX,
               low_base_default and 0, "ns/KiB", "time added per KiB"),
    )  # fmt: skip


def _jump_slow_jitter(table: str) -> tuple[Number, ...]:
    return (
        Number(table, "jump_ns", f"{table}_jump_ns", 0, TIME_NS_MAX, 0, "ns",
               "time added unless it continues where the last read or write ended"),
        Number(table, "slow_ns", f"{table}_slow_ns", 0, TIME_NS_MAX, 0, "ns",
               "time added in a slow episode"),
        Number(table, "jitter_ns", f"{table}_jitter_ns", 0, TIME_NS_MAX, 0, "ns",
               "uniform in +- this; at most base_ns"),
    )  # fmt: skip


# All but the time of an erase, which a disk without discard has not.
NUMBERS: tuple[Number, ...] = (
    Number("card", "capacity_mib", "capacity_mib", 1, 1024 * 1024, None, "MiB", "size"),
    Number("card", "seed", "seed", 0, U64_MAX, 1, "", "of jitter, episodes and random faults"),
    Number("card", "units", "units", 1, 16, 1, "", "flash units that work in parallel"),
    Number("card", "stripe_kib", "stripe_kib", 1, 1024, 16, "KiB",
           "consecutive data on one unit"),
    Number("card", "bus_per_kib_ns", "bus_per_kib_ns", 0, _PER_KIB_NS_MAX, 0, "ns/KiB",
           "time on the bus that all units share"),
    *costs("read", None, "read"),
    *_jump_slow_jitter("read"),
    *costs("write", None, "write that reaches the flash"),
    *_jump_slow_jitter("write"),
    Number("write", "pause_kib", "write_pause_kib", 0, 1024 * 1024, 0, "KiB",
           "a write waits each time this much more is written; 0: never"),
    Number("write", "pause_ns", "write_pause_ns", 0, TIME_NS_MAX, 0, "ns", "length of that wait"),
    Number("write", "runs", "write_runs", 0, 16, 0, "",
           "a write that continues one of the last so many runs of writes does not jump; "
           "0: as reads"),
    Number("flush", "base_ns", "flush_base_ns", 0, TIME_NS_MAX, 200_000, "ns",
           "time of a flush, next to writing what is cached"),
    Number("slow", "period_us", "slow_period_us", 0, 1_000_000_000, 0, "us",
           "one slow episode in each period; 0: none"),
    Number("slow", "length_us", "slow_length_us", 0, 1_000_000_000, 0, "us",
           "of an episode; at most 3/4 of the period"),
    Number("stall", "period_us", "stall_period_us", 0, 100_000_000_000, 0, "us",
           "in each period nothing starts for once; 0: never"),
    Number("stall", "low_us", "stall_low_us", 0, 600_000_000, 0, "us", "shortest stall"),
    Number("stall", "high_us", "stall_high_us", 0, 600_000_000, 0, "us",
           "longest stall; at most 3/4 of the period"),
    Number("heat", "after_us", "heat_after_us", 0, 3_600_000_000, 0, "us",
           "work that makes it hot, less the time without work; 0: never"),
    Number("heat", "percent", "heat_percent", 100, 10_000, 100, "%",
           "time per KiB while hot, of that while cool"),
    Number("cache", "kib", "cache_kib", 0, 65536, 0, "KiB", "volatile write cache; 0: none"),
    Number("cache", "base_ns", "cache_base_ns", 0, TIME_NS_MAX, 20_000, "ns",
           "time of a write the cache accepts"),
    Number("cache", "per_kib_ns", "cache_per_kib_ns", 0, _PER_KIB_NS_MAX, 4_000, "ns/KiB",
           "time added per KiB"),
)  # fmt: skip


def more_params(
    spec: Table, tables: Mapping[str, Table], values: Mapping[str, int], product_chars: int
) -> list[str]:
    """Read what is no number, and check what does not go together. Raises SpecError."""
    _check_relations(tables, values)
    allowed = f"1 to {product_chars} printable characters without spaces"
    product = tables["card"].text("product", rf"[!-~]{{1,{product_chars}}}", "STEADY", allowed)
    faults = take_faults(spec)
    return [f"name={product}", *([f"fault={','.join(faults)}"] if faults else [])]


def _check_relations(tables: Mapping[str, Table], values: Mapping[str, int]) -> None:
    for op in ("read", "write"):
        tables[op].integer("jitter_ns", 0, values[f"{op}_base_ns"], default=0)
    tables["slow"].integer("length_us", 0, values["slow_period_us"] // 4 * 3, default=0)
    tables["stall"].integer("high_us", 0, values["stall_period_us"] // 4 * 3, default=0)
    tables["stall"].integer("low_us", 0, values["stall_high_us"], default=0)
