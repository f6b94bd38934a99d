# SPDX-License-Identifier: MIT OR Apache-2.0
"""A loop device of this machine, with or without ext4, and mixed loads on it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT

STEADY = PROJECT / "build" / "bin" / "steady"
DISK_MIB = 512


@dataclass(frozen=True)
class Disk:
    """A device node, and where its file system is mounted, if it has one."""

    node: str
    mount: Path | None

    @property
    def name(self) -> str:
        return self.node.removeprefix("/dev/")

    @property
    def dev(self) -> str:
        """MAJOR:MINOR"""
        number = Path(self.node).stat().st_rdev
        return f"{os.major(number)}:{os.minor(number)}"


def run(*command: str | Path) -> str:
    """Run a program and return its output; raises CalledProcessError."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def loop_disk(ext4: bool, direct_io: bool = False) -> Iterator[Disk]:
    """A new loop device over a file below build/; all of it goes at the end.

    With `direct_io` the device does not keep the file in memory.
    """
    with tempfile.TemporaryDirectory(dir=BUILD) as name, contextlib.ExitStack() as stack:
        backing = Path(name) / "disk"
        with backing.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, DISK_MIB << 20)
        direct = "on" if direct_io else "off"
        node = run("losetup", "--find", "--show", f"--direct-io={direct}", backing)
        stack.callback(run, "losetup", "--detach", node)
        if not ext4:
            yield Disk(node, None)
            return
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", node)
        mount = Path(name) / "mnt"
        mount.mkdir()
        # A mounted ext4 reads its bitmaps at a random moment.
        run("mount", "-o", "no_prefetch_block_bitmaps", node, mount)
        stack.callback(run, "umount", mount)
        run("sync", "-f", mount)
        yield Disk(node, mount)


def mixed_load(disk: Disk, ios: int) -> str:
    """Return shell text of some `ios` I/Os: sizes, directions, interfaces and syncs mixed."""
    where = f"--filename={disk.node}" if disk.mount is None else f"--directory={disk.mount}"
    # The number of I/Os ends each job, not the size of its file.
    fio = f"fio --output=/dev/null {where} --size=96m --io_size=1t --number_ios={ios // 4}"
    fio += " --bsrange=4k-256k"
    lines = [
        "set -e",
        f"{fio} --name=psync --direct=1 --rw=randrw --ioengine=psync --fsync=32",
        f"{fio} --name=uring --direct=1 --rw=randrw --ioengine=io_uring --iodepth=8",
        f"{fio} --name=buffered --rw=randrw --ioengine=psync --fsync=64",
        f"{fio} --name=4k --direct=1 --rw=randrw --ioengine=io_uring --iodepth=8 --bsrange=4k-4k",
        "sync",
    ]
    if disk.mount is None:
        lines.append(f"for at in 1 3 5 7; do blkdiscard -o ${{at}}m -l 512k {disk.node}; done")
    else:
        lines += [f"rm {disk.mount}/psync.0.0", "sync", f"fstrim {disk.mount}"]
    return "\n".join(lines)
