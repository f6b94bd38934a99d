# SPDX-License-Identifier: MIT OR Apache-2.0
"""The disks of a guest under QEMU: QEMU's arguments, the drivers, and the nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.targets.target import BootError

# A power of two: what QEMU wants of an SD card.
SIZE_MIB = 256


@dataclass(frozen=True)
class DiskKind:
    """`options(number, cpus)` are QEMU's behind the drive `diskNUMBER`, `node(index)` the node.

    `module`: drivers to load, the last with its parameters. `index` counts disks of the kind.
    `newer`: QEMU of Debian 12 has it not. `new_id`: the name of a PCI driver, and a device that it
    does not know on 6.1.
    """

    modules: Sequence[str]
    node: Callable[[int], str]
    options: Callable[[int, int], Sequence[str]] | None
    newer: bool = False
    new_id: tuple[str, str] | None = None


def _letter(index: int) -> str:
    return "abcdefgh"[index]


KINDS: Mapping[str, DiskKind] = {
    "virtio": DiskKind(
        ("virtio_blk",),
        lambda index: f"/dev/vd{_letter(index)}",
        lambda n, cpus: ("-device", f"virtio-blk-pci,drive=disk{n},id=dev{n},num-queues={cpus}"),
    ),
    "scsi": DiskKind(
        ("virtio_scsi", "sd_mod"),
        lambda index: f"/dev/sd{_letter(index)}",
        lambda n, cpus: (
            *("-device", f"virtio-scsi-pci,id=bus{n},num_queues={cpus}"),
            *("-device", f"scsi-hd,drive=disk{n},bus=bus{n}.0,id=dev{n}"),
        ),
    ),
    "nvme": DiskKind(
        ("nvme",),
        lambda index: f"/dev/nvme{index}n1",
        lambda n, cpus: (
            *("-device", f"nvme,drive=disk{n},id=dev{n},serial=lab{n},max_ioqpairs={cpus}"),
        ),
    ),
    "sd": DiskKind(
        ("sdhci_pci", "mmc_block"),
        lambda index: f"/dev/mmcblk{index}",
        lambda n, _: (
            *("-device", f"sdhci-pci,id=bus{n}", "-device", f"sd-card,drive=disk{n},id=dev{n}"),
        ),
    ),
    "emmc": DiskKind(
        ("sdhci_pci", "mmc_block"),
        lambda index: f"/dev/mmcblk{index}",
        lambda n, _: (
            *("-device", f"sdhci-pci,id=bus{n}", "-device", f"emmc,drive=disk{n},id=dev{n}"),
        ),
        newer=True,
    ),
    "ufs": DiskKind(
        ("ufshcd_pci", "sd_mod"),
        lambda index: f"/dev/sd{_letter(index)}",
        lambda n, cpus: (
            *("-device", f"ufs,id=bus{n},mcq=on,mcq-maxq={cpus}"),
            *("-device", f"ufs-lu,drive=disk{n},bus=bus{n},id=dev{n}"),
        ),
        newer=True,
        new_id=("ufshcd", "1b36 0013"),
    ),
    "null": DiskKind(
        ("null_blk nr_devices=1 queue_mode=2 irqmode=1 memory_backed=1 gb=1 submit_queues={cpus}",),
        lambda _: "/dev/nullb0",
        None,
    ),
}


@dataclass(frozen=True)
class Disk:
    """One disk: `number` among all of the guest, `index` among those of its kind."""

    kind: str
    number: int
    index: int

    @property
    def node(self) -> str:
        """Its block device in the guest."""
        return KINDS[self.kind].node(self.index)

    def modules(self, cpus: int) -> list[str]:
        """Drivers to load, each with its parameters."""
        return [text.format(cpus=cpus) for text in KINDS[self.kind].modules]

    def arguments(self, cpus: int, folder: Path) -> list[str]:
        """QEMU's options; makes an empty image in `folder` first.

        A used image would hold what an earlier guest wrote.
        """
        options = KINDS[self.kind].options
        if options is None:
            return []
        image = folder / f"disk{self.number}.img"
        with image.open("wb") as file:
            file.truncate(SIZE_MIB << 20)
        drive = f"if=none,id=disk{self.number},file={image},format=raw,cache=unsafe"
        return ["-drive", drive, *options(self.number, cpus)]


def disks(kinds: Sequence[str]) -> list[Disk]:
    """Return the disks of a guest, in the order given; raises BootError for an unknown kind."""
    found: list[Disk] = []
    for number, kind in enumerate(kinds):
        if kind not in KINDS:
            raise BootError(f"no kind of disk {kind!r}: choose from {', '.join(KINDS)}")
        found.append(Disk(kind, number, sum(disk.kind == kind for disk in found)))
    return found
