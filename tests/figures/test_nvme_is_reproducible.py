# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two boots with the same emulated SSD, which collects garbage, give the same bytes."""

from pathlib import Path

from steady_lab.cli import main
from steady_lab.kernels.build import LabKernel

TINY = Path(__file__).parent / "tiny-nvme.toml"


def test_two_boots_with_an_ssd_give_the_same_bytes(base_kernel: LabKernel, work: Path) -> None:
    builds = [work / name for name in ("one", "two")]
    for build in builds:
        assert main(["run", str(TINY), "--build", str(build), "--jobs", "1"]) == 0
    for name in ("tiny-nvme.json", "tiny-nvme.csv"):
        one, two = (build / "results" / name for build in builds)
        assert one.read_bytes() == two.read_bytes(), f"diff {one} {two}"
