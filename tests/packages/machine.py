# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Debian system on a disk, booted by QEMU, whose commands come and go by a serial line."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.targets.qemu import PROGRAM, STALE_BREAKPOINT
from system import Ran

CPUS = 2
MEMORY_MIB = 2048
# The emulated processor takes minutes for what takes seconds, on a busy machine hours; these end
# what hangs.
BOOT_TIMEOUT_S = 3600
COMMAND_TIMEOUT_S = 14400
# What an emulator does slowly and nothing here needs: wide vectors, which the C library would take,
# a fifth level of page tables, and checks at each entry into the kernel. So, too, a kernel that
# turns its indirect jumps into returns: what processors speculate is not emulated.
PROCESSOR = "max,-avx,-avx2,-f16c,-fma,-la57,-pku,-smap,-smep,-umip"
# On a busy machine the guest measures a wrong speed of its time stamp counter; a clock 35 times too
# fast was seen. Its command line therefore selects another clock.
KERNEL_ARGUMENTS = (
    *("root=/dev/vda", "rw", "console=ttyS0", "panic=-1", "oops=panic", "random.trust_cpu=on"),
    "mitigations=off",
    *("tsc=unstable", "no_timer_check", "systemd.default_timeout_start_sec=1200"),
    *("systemd.default_device_timeout_sec=1200", "systemd.show_status=no"),
)


class Machine:
    """One disk, the folder that it shares with its guest (/media/share), and the guest."""

    def __init__(self, disk: Path, share: Path) -> None:
        self.disk = disk
        self.share = share
        self._log = disk.parent / "kernel.log"
        self._guest: subprocess.Popen[bytes] | None = None
        self._unread = ""
        self._scripts = 0

    def start(self) -> None:
        """Boot the kernel that the disk names as its own; raises LabError."""
        try:
            self._boot()
        except LabError:
            if STALE_BREAKPOINT not in self._log.read_text(errors="replace"):
                raise
            print(f"QEMU's fault, once more: {STALE_BREAKPOINT}", flush=True)
            self.kill()
            self._boot()

    def _boot(self) -> None:
        kernel, initrd = (self._boot_file(name) for name in ("vmlinuz", "initrd.img"))
        drive = f"if=virtio,file={self.disk},format=raw,cache=unsafe"
        share = f"local,path={self.share},mount_tag=share,security_model=none"
        command = [
            *(PROGRAM, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
            *("-accel", "tcg,thread=multi", "-cpu", PROCESSOR, "-smp", str(CPUS)),
            *("-m", str(MEMORY_MIB), "-kernel", str(kernel), "-initrd", str(initrd)),
            *("-append", " ".join(KERNEL_ARGUMENTS), "-drive", drive, "-virtfs", share),
            *("-serial", f"file:{self._log}", "-serial", "stdio"),
        ]
        self._unread = ""
        self._guest = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._read_until(r"agent: ready\n", BOOT_TIMEOUT_S)

    def run(self, text: str) -> Ran:
        """Run a script in the guest, as root in root's folder; raises LabError if it hangs."""
        print(f"--- in the guest:\n{text.rstrip()}\n---", flush=True)
        self._send(text)
        output, status = self._read_until(r"agent: status (\d+)\n", COMMAND_TIMEOUT_S)
        return Ran(int(status), output)

    def reboot(self) -> None:
        """Shut the guest down and start it again; raises LabError if it does not end."""
        self._send("systemctl poweroff\n")
        assert self._guest
        try:
            self._guest.wait(BOOT_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"the guest did not shut down, see {self._log}") from error
        self.start()

    def kill(self) -> None:
        """End the guest as a power cut does."""
        if self._guest:
            self._guest.kill()
            self._guest.wait()

    def _send(self, text: str) -> None:
        self._scripts += 1
        name = f"{self._scripts}.sh"
        (self.share / name).write_text(text)
        assert self._guest and self._guest.stdin
        self._guest.stdin.write(f"{name}\n".encode())
        self._guest.stdin.flush()

    def _boot_file(self, link: str) -> Path:
        """Do what a boot loader does: take the file that a link in / names."""
        about = self._debugfs(f"stat /{link}")
        found = re.search(r'^Fast link dest: "(.*)"$', about, re.MULTILINE)
        if not found:
            raise LabError(f"{self.disk}: /{link} is no link to a kernel's file")
        file = self.disk.parent / link
        self._debugfs(f"dump /{found[1]} {file}")
        return file

    def _debugfs(self, request: str) -> str:
        environment = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        done = subprocess.run(
            ["debugfs", "-R", request, self.disk],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        return done.stdout

    def _read_until(self, pattern: str, timeout_s: int) -> tuple[str, str]:
        """Return what the guest prints up to a line, and the line's group; shows all of it."""
        assert self._guest and self._guest.stdout
        end_s = time.monotonic() + timeout_s
        text, self._unread = self._unread, ""
        # apt leaves a line with the end of a colour, whatever its configuration says.
        while not (found := re.search(rf"^(?:\x1b\[\d*m)*{pattern}", text, re.MULTILINE)):
            left_s = end_s - time.monotonic()
            if left_s <= 0 or not select.select([self._guest.stdout], [], [], left_s)[0]:
                raise LabError(f"the guest printed no {pattern!r} within {timeout_s} s")
            data = os.read(self._guest.stdout.fileno(), 65536)
            if not data:
                raise LabError(f"the guest ended, see {self._log}")
            part = data.decode(errors="replace").replace("\r", "")
            print(part, end="", flush=True)
            text += part
        self._unread = text[found.end() :]
        return text[: found.start()], "".join(found.groups())
