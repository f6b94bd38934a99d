# SPDX-License-Identifier: MIT OR Apache-2.0
"""The card of the ext4 recording paper is as fast as measured there, and has the size it states."""

import tomllib
from pathlib import Path

from steady_lab.kernels.build import LabKernel
from steady_lab.paths import PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import Uml

DEVICES = PROJECT / "experiments" / "devices"
UNITS = 64
ERROR_MAX = 0.01
COMMAND = """
cat /sys/block/${{STEADY_DEVICE#/dev/}}/size
dd if=/dev/zero of=$STEADY_DEVICE bs={unit_mib}M count={units} oflag=direct 2>&1 | tail -n 1
"""


def test_the_card_writes_units_as_fast_as_published(base_kernel: LabKernel, work: Path) -> None:
    published = tomllib.loads((DEVICES / "published" / "s4.toml").read_text(encoding="utf-8"))
    unit_mib = published["throughput"]["unit_mib"]
    result = Uml(base_kernel).boot(
        BootRequest(
            command=["sh", "-c", COMMAND.format(unit_mib=unit_mib, units=UNITS)],
            work=work,
            device=DEVICES / "s4-emmc-8gb.toml",
        )
    )
    sectors, written = result.output.splitlines()
    assert int(sectors) * 512 >= published["board"]["partition_mb"] * 2**20
    seconds = float(written.split(", ")[-2].removesuffix(" s"))
    mb_s = UNITS * unit_mib * 2**20 / seconds / 1e6
    print(f"{mb_s:.3f} MB/s")
    assert abs(mb_s / published["throughput"]["mb_s"] - 1) < ERROR_MAX
