# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/tested.md: what passed on which stock kernel, out of the last `make test-stock`.

By hand: build/venv/bin/python tests/stock/tested.py [--write]
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping

from steady_lab.kernels.stock import STOCK_RELEASES, image_package
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.lock import STOCK, locked_packages
from steady_lab.targets.qemu import PROGRAM

sys.path.insert(0, str(PROJECT / "tests"))
from test_kernel import SCRIPTS, header

COMMAND = "tests/stock/tested.py --write"
PAGE = PROJECT / "docs" / "reference" / "tested.md"
RESULTS = BUILD / "tests" / "stock.xml"

# What a test shows, by its name or, where it has one, by its script.
WHAT = {
    "data_under_load": "k2: data, with counted splitting and with `rt_block_us`",
    "changes_under_load": "k2: scheduler, knobs and `nr_requests` changed under load",
    "test_a_disk_can_vanish_under_load": "k2: the disk removed under load",
    "chario_under_load": "chario: data of several threads",
    "chario_suspend": "chario: devices suspended and resumed under load, whole card and lane",
    "test_buffers_in_a_reserved_region": "chario, O_DIRECT: buffers in a region of device-dax",
    "test_buffers_by_address": "chario: buffers by address, in declared memory only",
    "test_files_can_be_read_while_the_scheduler_changes": "k2: its files read during a switch",
    "test_async_depth_limits_background": "k2: `queue/async_depth` limits background only",
    "test_recorder_tracer_and_bench_count_right": "`steady record`, `trace` and `bench`: counts",
}
ON_NULL_BLK = {
    "test_files_can_be_read_while_the_scheduler_changes",
    "test_async_depth_limits_background",
}
DISKS = {
    "virtio": "virtio-blk",
    "scsi": "virtio-scsi",
    "nvme": "NVMe",
    "sd": "SD card (sdhci)",
    "null": "null_blk",
}
Row = tuple[str, str]


def rows() -> dict[Row, dict[str, bool]]:
    """Whether it passed, by what and disk, and by release."""
    found: dict[Row, dict[str, bool]] = {}
    for case in ElementTree.parse(RESULTS).iter("testcase"):
        about = {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        if "release" not in about:
            continue
        passed = not any(case.iter("failure")) and not any(case.iter("error"))
        passed = passed and not any(case.iter("skipped"))
        found.setdefault(row_of(case, about), {})[about["release"]] = passed
    return found


def row_of(case: ElementTree.Element, about: Mapping[str, str]) -> Row:
    name = case.get("name", "").partition("[")[0]
    if name == "test_as_on_the_lab_kernel":
        script = SCRIPTS / f"{about['script']}.sh"
        return f"k2: {header(script)['DESCRIPTION']}", DISKS["null"]
    disk = about.get("disk", "null" if name in ON_NULL_BLK else "sd")
    return WHAT[about.get("script", name)], DISKS[disk]


def versions() -> dict[str, str]:
    """The package of each release's image, and the begin of its hash."""
    images = {
        release: image_package(locked_packages(f"{STOCK}-{release}")) for release in STOCK_RELEASES
    }
    return {
        release: f"{one.name.split('-', 2)[2]}<br>{one.version}<br>{one.sha256[:12]}"
        for release, one in images.items()
    }


def table() -> Iterator[str]:
    yield f"| what | disk | {' | '.join(versions()[release] for release in STOCK_RELEASES)} |"
    yield f"| --- | --- |{' --- |' * len(STOCK_RELEASES)}"
    for (what, disk), cells in sorted(rows().items(), key=lambda row: (row[0][1], row[0][0])):
        words = [
            {True: "passed", False: "**failed**", None: "not run"}[cells.get(release)]
            for release in STOCK_RELEASES
        ]
        yield f"| {what} | {disk} | {' | '.join(words)} |"


def emulator() -> str:
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def main() -> int:
    part = "\n".join([*table(), "", f"Emulated by {emulator()}; x86-64, three CPUs.", ""])
    print(part)
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_part(page, "tested", COMMAND, part), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
