# SPDX-License-Identifier: MIT OR Apache-2.0
"""A minimal Debian made from a local archive: as a tar archive, and as a disk."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from archive import CONTENTS, NEEDED, SYSTEM, Archive, Release
from steady_lab.hashes import sha256_file

HERE = Path(__file__).parent
SIZE = "6G"
# The initramfs has what the emulated disk needs only: a whole one takes the emulator minutes.
INITRAMFS = "MODULES=list\nCOMPRESS=gzip\n"
INITRAMFS_MODULES = "virtio_pci\nvirtio_blk\next4\n"
FSTAB = "/dev/vda / ext4 defaults 0 1\n"
# Questions have the answer that a user presses Enter for; a progress bar is no line of text.
APT = 'APT::Get::Assume-Yes "true";\nAPT::Color "false";\nquiet "1";\nAcquire::Languages "none";\n'
DPKG = "force-unsafe-io\n"
# They take the emulator's time and nobody waits for them.
IDLE_UNITS = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "systemd-tmpfiles-clean.timer"),
    *("getty@tty1.service", "serial-getty@ttyS0.service", "systemd-networkd.service"),
)
AGENT = "/usr/local/sbin/agent"
UNIT = f"""\
[Service]
ExecStart={AGENT}
StandardInput=tty-force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
Environment=TERM=dumb HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
WorkingDirectory=/root
[Install]
WantedBy=multi-user.target
"""


def make_tar(release: Release, archive: Archive, tar: Path) -> None:
    """Install the archive's old system, and what our packages need, unless that is done."""
    inputs = [archive.folder / "before" / CONTENTS, HERE / "agent.sh", Path(__file__)]
    text = "\n".join([sha256_file(file) for file in inputs])
    made_of = tar.with_suffix(".inputs")
    if not (tar.is_file() and made_of.is_file() and made_of.read_text() == text):
        tar.parent.mkdir(parents=True, exist_ok=True)
        _make_tar(release, archive, tar)
        made_of.write_text(text)


def _make_tar(release: Release, archive: Archive, tar: Path) -> None:
    files = tar.with_suffix(".files")
    for path, text in {
        "etc/initramfs-tools/conf.d/driver": INITRAMFS,
        "etc/initramfs-tools/modules": INITRAMFS_MODULES,
        "etc/fstab": FSTAB,
        "etc/hostname": "guest\n",
        "etc/apt/apt.conf.d/90-answers": APT,
        "etc/dpkg/dpkg.cfg.d/90-fast": DPKG,
        "etc/systemd/system/agent.service": UNIT,
        AGENT.lstrip("/"): (HERE / "agent.sh").read_text(),
    }.items():
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(text)
    (files / AGENT.lstrip("/")).chmod(0o755)
    command = [
        *("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join([*SYSTEM, *NEEDED])}"),
        '--aptopt=APT::Sandbox::User "root"',
        f'--essential-hook=cp -R {shlex.quote(str(files))}/. "$1"',
        '--customize-hook=chroot "$1" systemctl enable agent.service',
        f'--customize-hook=chroot "$1" systemctl mask {" ".join(IDLE_UNITS)}',
        '--customize-hook=rm "$1/etc/apt/sources.list"',
        *(release.suite, str(tar), f"deb [trusted=yes] copy:{archive.folder}/before ./"),
    ]
    subprocess.run(command, check=True)


def make_disk(tar: Path, disk: Path) -> None:
    """One ext4 file system; owners stay those of the tar archive, under any user."""
    script = (
        'rm -rf "$1.root" && mkdir "$1.root" && tar -xpf "$2" -C "$1.root" --exclude "./dev/*" && '
        'mkfs.ext4 -q -F -d "$1.root" "$1" "$3" && rm -rf "$1.root"'
    )
    subprocess.run(["fakeroot", "sh", "-c", script, "sh", disk, tar, SIZE], check=True)
