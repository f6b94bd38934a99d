# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/tested.md: what passed on which kernel.

Out of the last `make test-stock` and the last `make test-races`. What did not run this time stays,
unless its kernel is another one now.

By hand: build/venv/bin/python tests/stock/tested.py [--write]
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from steady_lab.kernels.architecture import SANITIZERS
from steady_lab.kernels.source import RELEASES
from steady_lab.kernels.stock import ARM_KERNELS, RT_KERNELS, image_package
from steady_lab.kernels.watching import WATCHED_RELEASES
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.lock import LINUX, STOCK, locked_packages
from steady_lab.targets.qemu import newer_program
from steady_lab.targets.qemu_machine import ARM_BOARD, ARM_BOARD_32, PC

sys.path.insert(0, str(PROJECT / "tests"))
from kernel_scripts import SCRIPTS, header

COMMAND = "tests/stock/tested.py --write"
PAGE = PROJECT / "docs" / "reference" / "tested.md"
STOCK_RESULTS, RACES_RESULTS = (BUILD / "tests" / f"{name}.xml" for name in ("stock", "races"))
RACE_KERNELS = [f"{release}-{one}" for release in WATCHED_RELEASES for one in SANITIZERS]

# What a test shows, by its name or, where it has one, by its script.
WHAT = {
    "data_under_load": "k2: data, with counted splitting and with `rt_block_us`",
    "changes_under_load": "k2: scheduler, knobs and `nr_requests` changed under load",
    "removal_under_load": "k2: the disk removed under load",
    "ufs_priority": "k2: UFS's priority bit, real-time only",
    "chario_under_load": "chario: data of several threads",
    "chario_suspend": "chario: devices suspended and resumed under load, whole card and lane",
    "reserved_region": "chario, O_DIRECT: buffers in a region of device-dax",
    "by_address": "chario: buffers by address, in declared memory only",
    "files_while_switching": "k2: its files read during a switch",
    "declared_crypt": "k2: a declared task through dm-crypt",
    "interrupt_threads": "`steady doctor`, `with`: a task computes above a disk's interrupt",
    "async_depth": "k2: `queue/async_depth`, which 7.3 has, limits background only",
    "programs": "`steady record`, `trace` and `bench`: counts",
    "nvme_commands": "`steady direct` through `/dev/ngXnY`: data, refusals, who may",
    # On kernels that look for races.
    "k2_under_load": "k2: all knobs written and read, schedulers switched under load",
    "test_chario": "chario: taken, returned, made a lane and ended under transfers",
    "test_k2_when_disks_vanish": "k2: the disks removed under load",
    "test_k2_in_the_kernel_tests": "k2: the kernel tests that need no virtual time",
    "test_a_seeded_bug_is_found": "a seeded bug is found",
}
DISKS = {
    "virtio": "virtio-blk",
    "scsi": "virtio-scsi",
    "nvme": "NVMe",
    "sd": "SD card (sdhci)",
    "emmc": "eMMC (sdhci)",
    "ufs": "UFS",
    "null": "null_blk",
}
# Tests that are not run separately for each kind of disk.
DISKS_OF = {
    "test_k2_when_disks_vanish": "virtio nvme",
    "test_k2_in_the_kernel_tests": "null",
    "test_a_seeded_bug_is_found": "",
}
WORDS = {True: "passed", False: "**failed**", None: "not run"}
# Scripts of tests/kernel on one line; their names describe them.
KERNEL_TESTS = re.compile(r"k2: (`\w+`(?:, `\w+`)*)")
Row = tuple[str, str]


def rows(results: Path, kernels: Container[str]) -> dict[Row, dict[str, bool]]:
    """Whether it passed, by what and disk, and by the kernel."""
    found: dict[Row, dict[str, bool]] = {}
    for case in ElementTree.parse(results).iter("testcase"):
        about = {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        kernel = about.get("kernel", "")
        if kernel not in kernels:
            continue
        for row, passed in cells(case, about):
            of_row = found.setdefault(row, {})
            of_row[kernel] = passed and of_row.get(kernel, True)
    return found


def cells(case: ElementTree.Element, about: Mapping[str, str]) -> Iterator[tuple[Row, bool]]:
    """What a test shows: one thing, or as many as it says itself (stock_kernels.py)."""
    several = [name for name in about if name.startswith("cell ")]
    for name in several:
        script, disk = name.removeprefix("cell ").rsplit("-", 1)
        for row in rows_of(script, {"disk": disk}):
            yield row, about[name] == "passed"
    if not several:
        test = case.get("name", "").partition("[")[0]
        bad = [one for kind in ("failure", "error", "skipped") for one in case.iter(kind)]
        for row in rows_of(test, about):
            yield row, not bad


def rows_of(test: str, about: Mapping[str, str]) -> list[Row]:
    """One for each disk. `test`: its name, or SCRIPT[:PROGRAMS]."""
    key, _, programs = about.get("script", test).partition(":")
    # What it does not name is a script of tests/kernel.
    what = WHAT.get(key, f"k2: `{key}`")
    if programs:
        what += f" ({programs})"
    kinds = about.get("disks", about.get("disk", DISKS_OF.get(test, "sd")))
    return [(what, DISKS[kind]) for kind in kinds.split()] or [(what, "")]


def race_versions() -> dict[str, str]:
    """The source of each, and the begin of its hash."""
    return {
        name: f"{name.replace('-', ', ')}<br>{one.version}<br>{one.sha256[:12]}"
        for name in RACE_KERNELS
        for one in locked_packages(f"{LINUX}-{name.split('-')[0]}")
    }


def versions(kernels: Iterable[str]) -> dict[str, str]:
    """The package of each kernel's image, and the begin of its hash."""
    images = {name: image_package(locked_packages(f"{STOCK}-{name}")) for name in kernels}
    return {
        kernel: f"{one.name.split('-', 2)[2]}<br>{one.version}<br>{one.sha256[:12]}"
        for kernel, one in images.items()
    }


def earlier(page: str, name: str, columns: Mapping[str, str]) -> dict[Row, dict[str, bool]]:
    """The cells of the page for the same kernels, and for tests that still exist."""
    part = page.partition(f"<!-- {name}: ")[2].partition(f"<!-- /{name} -->")[0]
    lines = [line[2:-2].split(" | ") for line in part.splitlines() if line.startswith("| ")]
    if not lines:
        return {}
    kernels = {text: kernel for kernel, text in columns.items()}
    known = (*WHAT.values(), *(f"k2: `{one.stem}`" for one in kernel_tests()))
    passed = {word: value for value, word in WORDS.items() if value is not None}
    return {
        (what, disk): {
            kernels[text]: passed[word]
            for text, word in zip(lines[0][2:], words, strict=True)
            if text in kernels and word in passed
        }
        for whats, disks, *words in lines[2:]
        for what in split_tests(whats)
        if what.startswith(known)
        for disk in disks.split(", ")
    }


def split_tests(what: str) -> list[str]:
    """Each kernel test of a line alone."""
    match = KERNEL_TESTS.fullmatch(what)
    return [f"k2: {name}" for name in match[1].split(", ")] if match else [what]


def kernel_tests() -> list[Path]:
    return [path for path in SCRIPTS.glob("*.sh") if header(path).get("STOCK") == "yes"]


def table(columns: Mapping[str, str], found: Mapping[Row, Mapping[str, bool]]) -> Iterator[str]:
    """Lines of a table, with the columns that were run.

    Disks with the same cells share a line, and so do kernel tests.
    """
    found = {row: cells for row, cells in found.items() if cells}
    ran = [name for name in columns if any(name in cells for cells in found.values())]
    yield f"| what | disks | {' | '.join(columns[name] for name in ran)} |"
    yield f"| --- | --- |{' --- |' * len(ran)}"
    disks_of: dict[tuple[str, str], list[str]] = {}
    for (what, disk), cells in sorted(found.items()):
        words = " | ".join(WORDS[cells.get(name)] for name in ran)
        disks_of.setdefault((what, words), []).append(disk)
    lines: dict[tuple[str, str, str], list[str]] = {}
    for (what, words), disks in disks_of.items():
        name = KERNEL_TESTS.fullmatch(what)
        line = ("" if name else what, ", ".join(disks), words)
        lines.setdefault(line, []).extend([name[1]] if name else [])
    for (what, disks_text, words), names in lines.items():
        yield f"| {what or 'k2: ' + ', '.join(names)} | {disks_text} | {words} |"


def emulator(program: Sequence[str]) -> str:
    command = [*program, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].removeprefix("QEMU emulator version ")


def pc() -> str:
    qemu, newer = emulator([PC.program]), emulator(newer_program())
    return f"Emulated by QEMU {qemu}, eMMC and UFS by {newer}."


def arm_board() -> str:
    boards = [" ".join(one.board) for one in (ARM_BOARD, ARM_BOARD_32)]
    return f"Emulated by QEMU {emulator([ARM_BOARD.program])}; {' and '.join(boards)}."


def main() -> int:
    for name, results, columns, emulated in (
        ("tested", STOCK_RESULTS, versions(RELEASES), pc),
        ("preempt-rt", STOCK_RESULTS, versions(RT_KERNELS), pc),
        ("arm", STOCK_RESULTS, versions(ARM_KERNELS), arm_board),
        ("races", RACES_RESULTS, race_versions(), pc),
    ):
        # Results that were not renewed here stay.
        if not results.is_file():
            continue
        page = PAGE.read_text(encoding="utf-8")
        found = earlier(page, name, columns)
        for row, ran in rows(results, columns).items():
            found.setdefault(row, {}).update(ran)
        part = "\n".join([*table(columns, found), "", emulated(), ""])
        print(part)
        if "--write" in sys.argv[1:]:
            PAGE.write_text(with_part(page, name, COMMAND, part), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
