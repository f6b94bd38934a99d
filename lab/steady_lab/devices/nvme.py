# SPDX-License-Identifier: MIT OR Apache-2.0
"""The emulated NVMe SSD, lab/devices/nvme: the keys of its specs, and its module parameters.

What the timing model takes has the names, ranges and defaults of lab/devices/flash/ssd_params.c.
"""

from __future__ import annotations

from collections.abc import Mapping

from steady_lab.devices.faults import take_faults
from steady_lab.devices.kind import Kind, Number
from steady_lab.kernels.modules import emulated
from steady_lab.toml_table import Table

MDTS_KIB_MAX = 1024
# Slots of 4 KiB that one slot of the host takes in the buffer at most, with four of the map.
WRITE_SLOTS_MAX = 5

_SECOND_NS = 1_000_000_000
_PER_KIB_NS_MAX = 10_000_000
_MILLION = 1_000_000
_U64_MAX = 2**64 - 1


def _time(table: str, key: str, param: str, default: int, meaning: str, low: int = 0) -> Number:
    return Number(table, key, param, low, _SECOND_NS, default, "ns", meaning)


NUMBERS: tuple[Number, ...] = (
    Number("drive", "capacity_mib", "capacity_mib", 16, 4194304, None, "MiB",
           "size of all namespaces; only what is written takes memory, and 8 bytes per 4 KiB"),
    Number("drive", "spare_permille", "spare_permille", 1, 2000, 99, "1/1000",
           "flash beyond the capacity"),
    Number("drive", "namespaces", "namespaces", 1, 16, 1, "", "of equal size"),
    Number("drive", "seed", "seed", 0, _U64_MAX, 1, "",
           "of the used drive's state, of jitter and of random faults"),
    Number("host", "queues", "queues", 1, 16, 8, "",
           "pairs of I/O queues; the kernel takes as many as it has CPUs"),
    Number("host", "queue_entries", "queue_entries", 2, 4096, 1024, "", "length of a queue"),
    Number("host", "mdts_kib", "mdts_kib", 4, MDTS_KIB_MAX, 512, "KiB",
           "largest read or write; a power of two"),
    Number("host", "volatile_cache", "volatile_cache", 0, 1, 1, "",
           "1: the drive reports a volatile write buffer to the kernel; 0: it reports none"),
    Number("host", "admin_ns", "admin_ns", 1000, _SECOND_NS, 10_000, "ns",
           "time of an admin command, and of one that is refused"),
    Number("controller", "queue_commands", "queue_commands", 1, 4096, 1024, "",
           "commands in the drive at once"),
    _time("controller", "read_command_ns", "read_command_ns", 4550,
          "time of each read, one after the other"),
    _time("controller", "write_command_ns", "write_command_ns", 8360,
          "time of each write, one after the other"),
    Number("controller", "link_per_kib_ns", "link_per_kib_ns", 0, _PER_KIB_NS_MAX, 285, "ns/KiB",
           "time of data on the link, one command after the other"),
    _time("controller", "read_front_ns", "read_front_ns", 34_000, "time added to a read"),
    _time("controller", "write_front_ns", "write_front_ns", 4_000, "time added to a write"),
    _time("controller", "discard_front_ns", "discard_front_ns", 50_000,
          "time added to a discard or write zeroes"),
    Number("flash", "channels", "channels", 1, 16, 8, "", ""),
    Number("flash", "dies_per_channel", "dies_per_channel", 1, 16, 1, "", ""),
    Number("flash", "planes", "planes", 1, 4, 2, "", "of a die"),
    Number("flash", "read_planes", "read_planes", 1, 4, 1, "",
           "planes whose page one read gets; must divide planes"),
    Number("flash", "page_kib", "page_kib", 4, 64, 16, "KiB", "page of a plane; a multiple of 4"),
    Number("flash", "bits", "bits", 1, 3, 3, "", "per cell: pages per plane of one program"),
    Number("flash", "rows", "rows", 1, 4096, 92, "", "programs of a block"),
    _time("flash", "read_lsb_ns", "read_lsb_ns", 45_000, "read of a page of the first bit", 1),
    _time("flash", "read_csb_ns", "read_csb_ns", 50_000, "of the second", 1),
    _time("flash", "read_msb_ns", "read_msb_ns", 58_000, "of the third", 1),
    Number("flash", "retry_ppm", "retry_ppm", 0, _MILLION, 0, "1/10^6", "reads that need a retry"),
    _time("flash", "retry_ns", "retry_ns", 0, "time of a retry"),
    _time("flash", "transfer_ns", "transfer_ns", 3000, "4 KiB on a channel"),
    _time("flash", "program_ns", "program_ns", 1_528_000, "program of all bits and planes", 1),
    _time("flash", "program_jitter_ns", "program_jitter_ns", 65_000,
          "uniform in +- this; at most program_ns"),
    _time("flash", "erase_ns", "erase_ns", 3_600_000, "erase of a block", 1),
    Number("flash", "erase_every", "erase_every", 1, 1000, 4, "",
           "of so many blocks one is erased: for lines that are smaller than the drive's"),
    Number("flash", "read_streak", "read_streak", 1, _MILLION, 8, "",
           "reads in a row that go before a program or erase"),
    _time("flash", "suspend_ns", "suspend_ns", 0,
          "until a program or erase is suspended for a read; 0: it is not"),
    _time("flash", "resume_ns", "resume_ns", 0, "until it goes on"),
    Number("flash", "suspends_max", "suspends_max", 1, _MILLION, 16, "",
           "of one program or erase"),
    Number("read_ahead", "pages", "ahead_pages", 1, 48, 1, "",
           "of a row, that a read which goes on where one of the last ended gets; 1: its own"),
    Number("read_ahead", "kept", "ahead_kept", 1, 64, 8, "",
           "such reads that stay in the controller's memory"),
    Number("house", "period_us", "house_period_us", 0, _SECOND_NS, 0, "us",
           "one die after the other keeps house, one in each period; 0: never"),
    _time("house", "time_ns", "house_ns", 0, "for which the die is busy"),
    Number("buffer", "kib", "buffer_kib", 4, 1048576, 1376, "KiB",
           "write buffer; its room is free again when a program ends"),
    Number("map", "permille", "map_permille", 0, 4000, 644, "1/1000",
           "writes of the map, per write of 4 KiB in a part of it that is not cached"),
    Number("map", "cached", "map_cached", 1, 64, 16, "", "parts, of 4 MiB of data, that are"),
    Number("slc", "lines", "slc_lines", 0, 10000, 0, "",
           "lines that take the host's data first, with one bit per cell; 0: none do"),
    _time("slc", "program_ns", "slc_program_ns", 200_000, "program of such a line", 1),
    Number("gc", "free_lines", "gc_free_lines", 3, 10000, 6, "",
           "garbage is collected when fewer lines are free"),
    Number("gc", "reserve_lines", "gc_reserve_lines", 2, 10000, 2, "",
           "that only garbage collection takes; fewer than free_lines"),
    Number("gc", "lag_permille", "gc_lag_permille", 0, 1000, 30, "1/1000",
           "of a line: how far garbage collection may be behind writes"),
    Number("gc", "reads", "gc_reads", 1, 256, 32, "", "page reads for it at once"),
    Number("used", "permille", "used_permille", 0, 1000, 0, "1/1000",
           "of the capacity, from its start, were written in order"),
    Number("used", "hot_permille", "hot_permille", 0, 1000, 0, "1/1000",
           "then overwritten at random, until that changes nothing; at most permille"),
)  # fmt: skip


def _more(spec: Table, tables: Mapping[str, Table], values: Mapping[str, int]) -> list[str]:
    _check_relations(tables, values)
    model = tables["drive"].text(
        "model", r"[!-~]{1,40}", "STEADY-SSD", "1 to 40 printable characters without spaces"
    )
    faults = take_faults(spec)
    return [f"model={model}", *([f"fault={','.join(faults)}"] if faults else [])]


def _check_relations(tables: Mapping[str, Table], values: Mapping[str, int]) -> None:
    if values["mdts_kib"].bit_count() != 1:
        raise tables["host"].fail("mdts_kib", f"a power of two from 4 to {MDTS_KIB_MAX}")
    if values["page_kib"] % 4:
        raise tables["flash"].fail("page_kib", "a multiple of 4 from 4 to 64")
    if values["planes"] % values["read_planes"]:
        raise tables["flash"].fail("read_planes", "a divisor of planes")
    tables["flash"].integer("program_jitter_ns", 0, values["program_ns"], default=0)
    tables["gc"].integer("reserve_lines", 2, values["gc_free_lines"] - 1, default=2)
    tables["used"].integer("hot_permille", 0, values["used_permille"], default=0)
    if values["house_period_us"] * 500 < values["house_ns"]:
        raise tables["house"].fail("period_us", "at least twice time_ns")
    unit_kib = values["planes"] * values["page_kib"] * values["bits"]
    if values["buffer_kib"] // 4 < unit_kib // 4 + WRITE_SLOTS_MAX:
        raise tables["buffer"].fail("kib", f"at least {unit_kib + 4 * WRITE_SLOTS_MAX}")
    _check_spare(tables["drive"], values, unit_kib)


def _check_spare(drive: Table, values: Mapping[str, int], unit_kib: int) -> None:
    line_kib = unit_kib * values["rows"] * values["channels"] * values["dies_per_channel"]
    user_kib = values["capacity_mib"] * 1024
    map_kib = -(-user_kib // 4096) * 4
    lines = -(-(user_kib + user_kib // 4 * values["spare_permille"] // 1000 * 4) // line_kib)
    kept = values["gc_free_lines"] + values["slc_lines"] + 3
    if lines < kept or user_kib + map_kib > (lines - kept) * line_kib:
        allowed = f"larger: beyond capacity_mib, flash must hold {kept} lines of {line_kib} KiB"
        raise drive.fail("spare_permille", allowed)


NVME = Kind(
    name="nvme",
    module=emulated("steady_nvme", "nvme"),
    node="/dev/nvme0n1",
    trouble=r"steady_nvme: (?:no device|memory is full)",
    numbers=NUMBERS,
    more=_more,
    drivers=("nvme",),
    unload=False,
    write_log=False,
)
