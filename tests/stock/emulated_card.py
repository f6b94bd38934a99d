# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's emulated eMMC on Debian's own kernels: its data, and its time on a counted clock."""

from __future__ import annotations

import json
from pathlib import Path

import guest
import pytest
from steady_lab.devices.spec import load_device
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.kernels.stock import STOCK_KERNELS, stock_kernel
from steady_lab.paths import GUEST_PROJECT
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootRequest

QUEUE = EXPERIMENTS / "devices" / "test-queue.toml"
BOARD = EXPERIMENTS / "devices" / "s5-jetson-emmc-8gb-noqueue.toml"
READS, KIB = 20, 128


@guest.needs_qemu
@pytest.mark.parametrize("name", STOCK_KERNELS)
def test_what_four_writers_write_through_k2_is_read_again(name: str, work: Path) -> None:
    script = """
        echo k2 >/sys/block/${STEADY_DISKS#/dev/}/queue/scheduler
        for n in 0 1 2 3; do
            head -c 1m /dev/urandom >part$n
            dd if=part$n of=$STEADY_DISKS bs=64k seek=$((n * 16)) oflag=direct status=none &
        done
        wait
        cat part0 part1 part2 part3 >all
        dd if=$STEADY_DISKS bs=64k count=64 iflag=direct status=none | cmp - all
    """
    request = BootRequest(["sh", "-ec", script], work, device=QUEUE, timeout_s=guest.TIMEOUT_S)
    result = Qemu(stock_kernel(name), guest.CPUS).boot(request)
    assert result.exit_status == 0, result.output


@guest.needs_qemu
def test_a_read_takes_the_cards_time_and_what_its_instructions_take(work: Path) -> None:
    values = load_device(BOARD).values
    card_ns = values["read_base_ns"] + KIB * (values["read_per_kib_ns"] + values["bus_per_kib_ns"])

    def spans(instruction_ns: int) -> dict[str, float]:
        dd = f"dd if=$STEADY_DISKS of=/dev/null bs={KIB}k count={READS} iflag=direct"
        trace = f"{GUEST_PROJECT}/build/bin/steady trace --device $STEADY_DISKS --json -- {dd}"
        command = ["sh", "-ec", f"{trace} >{instruction_ns}.json"]
        request = BootRequest(command, work, device=BOARD, timeout_s=guest.TIMEOUT_S)
        result = Qemu(stock_kernel("6.12"), 1, instruction_ns=instruction_ns).boot(request)
        assert result.exit_status == 0, result.output
        (group,) = json.loads((work / f"{instruction_ns}.json").read_text())["ios"]
        assert group["count"] == READS
        return {span["span"]: span["p50_ns"] for span in group["spans"]}

    one, four = spans(1), spans(4)
    for found in (one, four):
        assert card_ns <= found["device"] < 1.1 * card_ns, (card_ns, found)
    software = [sum(of.values()) - of["device"] for of in (one, four)]
    assert 3 < software[1] / software[0] < 5, (one, four)
