# SPDX-License-Identifier: MIT OR Apache-2.0
"""The packages as a user has them: installed, chosen, upgraded and purged in a booted Debian 13.

The commands are those of docs/guides/install.md. The tests are one story, in this order: each needs
the machine as the one before leaves it. What needs no running kernel is in in_a_root.py. Called by
`make test-packages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import guide
import pytest
from archive import DEBIAN_13, Archive, make_archive
from image import make_disk, make_tar
from machine import Machine
from system import PACKAGES, WORK, known_series, left, modules, put_packages, run, use_archives

FOLDER = WORK / DEBIAN_13.suite
# Both classes of k2, on the file system that the guest runs on; each block has its checksum.
LOAD = """\
set -e
fio --directory=/root --direct=1 --ioengine=libaio --iodepth=4 --rw=randwrite --verify=crc32c \
	--verify_fatal=1 --name=rt --prioclass=1 --bs=4k --size=2M \
	--name=bg --prioclass=2 --bsrange=4k-512k --size=24M
rm /root/rt.*.0 /root/bg.*.0
cat /sys/kernel/debug/block/vda/sched/counters
"""


@pytest.fixture(scope="module")
def archive() -> Archive:
    found = make_archive(DEBIAN_13, FOLDER / "share", known_series())
    print(*sorted(file.name for file in (found.folder / "after").glob("*.deb")), sep="\n")
    return found


@pytest.fixture(scope="module")
def machine(archive: Archive) -> Iterator[Machine]:
    make_tar(DEBIAN_13, archive, FOLDER / "root.tar")
    make_disk(FOLDER / "root.tar", FOLDER / "disk.img")
    machine = Machine(FOLDER / "disk.img", archive.folder)
    try:
        machine.start()
        yield machine
    finally:
        machine.kill()


def assert_k2_is_chosen_by_name(machine: Machine) -> None:
    run(machine, "! grep ^k2 /proc/modules")
    assert "[k2]" in run(machine, guide.commands("Choose k2", disk="vda"))


def assert_data_is_right(machine: Machine) -> None:
    counters = run(machine, LOAD)
    for name in ("rt", "background"):
        completed = re.search(rf"^{name} completed (\d+)$", counters, re.MULTILINE)
        assert completed and int(completed[1]) > 0, counters


def test_the_packages_are_installed_and_built(machine: Machine, archive: Archive) -> None:
    use_archives(machine, "before")
    put_packages(machine, PACKAGES)
    run(machine, guide.commands("Install"))
    assert run(machine, "uname -r").strip() == archive.old_kernel
    assert modules(machine, archive.old_kernel) == {"k2", "chario"}


def test_k2_is_chosen_by_name_and_keeps_data(machine: Machine) -> None:
    assert_k2_is_chosen_by_name(machine)
    assert_data_is_right(machine)


def test_steady_runs_and_has_its_man_page(machine: Machine) -> None:
    version = re.search(r"k2-dkms_([^_]+)_", next(PACKAGES.glob("k2-dkms_*.deb")).name)
    assert version and run(machine, "steady --version").strip() == f"steady {version[1]}"
    assert "/usr/share/man/man1/steady.1.gz" in run(machine, "dpkg -L steadyio | xargs ls -d")


def test_k2_is_chosen_by_name_after_a_reboot(machine: Machine) -> None:
    machine.reboot()
    assert_k2_is_chosen_by_name(machine)


def test_a_newer_kernel_gets_its_modules(machine: Machine, archive: Archive) -> None:
    """While k2 is in use."""
    use_archives(machine, "after")
    run(machine, guide.commands("Upgrade"))
    assert modules(machine, archive.new_kernel) == {"k2", "chario"}


def test_k2_is_chosen_by_name_in_the_newer_kernel_and_keeps_data(
    machine: Machine, archive: Archive
) -> None:
    machine.reboot()
    assert run(machine, "uname -r").strip() == archive.new_kernel
    assert_k2_is_chosen_by_name(machine)
    assert_data_is_right(machine)


def test_a_purge_leaves_no_file(machine: Machine) -> None:
    run(machine, guide.commands("Remove", disk="vda"))
    assert left(machine) == ""
