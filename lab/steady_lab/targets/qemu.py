# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run one command under QEMU, with several CPUs, on real clocks.

The kernel is a stock one of Debian, or one that watches the modules (kernels/watching.py).

What UML cannot have: CPUs that run at the same time, interrupts, the drivers of virtio, NVMe and
SDHCI, and a kernel that nobody built for the lab. QEMU emulates the processor (TCG), so every
machine can run it; times say nothing about hardware.

The guest's root is the lab's own, shared read-only over 9P, like the clone and the kernel's
modules; the work folder is shared for writing.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Protocol

from steady_lab.devices.spec import DeviceSpec, load_device
from steady_lab.hashes import sha256_file
from steady_lab.kernels.modules import K2, Kernel, build_modules, on_request
from steady_lab.paths import BUILD, GUEST_KERNEL, GUEST_PROJECT, GUEST_WORK, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.root.lock import NATIVE
from steady_lab.root.root import emulator_root, guest_root
from steady_lab.targets.guest_init import Console, GuestRun, ModuleLoad, init_script
from steady_lab.targets.guest_run import (
    CONSOLE,
    INIT,
    KERNEL_LOG,
    PRIVATE,
    GuestProcess,
    run_guest,
)
from steady_lab.targets.initramfs import initramfs
from steady_lab.targets.qemu_disks import KINDS, Disk, disks
from steady_lab.targets.qemu_machine import MACHINES, PC, Machine
from steady_lab.targets.qemu_standstill import STANDSTILL, Standstill
from steady_lab.targets.target import BootError, BootRequest, BootResult, modules_of

PROGRAM = PC.program
MEMORY_MIB = 1024
CPUS_DEFAULT = 3
# Of the guest's clock. With a time per instruction that clock runs ahead while an idle guest waits
# for a file of a busy host: then only real time is limited.
UPTIME_S_MAX = 3600
UNLIMITED_S = 10**9
# What QEMU can take for each instruction: its option is a shift.
INSTRUCTION_NS = tuple(1 << shift for shift in range(11))
# What the initramfs loads so that the guest finds its root, as modules or built in.
ROOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p")
SHARES = {GUEST_WORK: "work", GUEST_PROJECT: "project", GUEST_KERNEL: "kernel"}
OPTIONS_9P = "trans=virtio,version=9p2000.L,msize=262144"
# QEMU with a thread per CPU executes the breakpoint of a kernel that patches itself although the
# patch is complete; seen once in about 60 boots, when the clock became stable.
STALE_BREAKPOINT = "Oops: int3"
# It also raises a debug exception in a kernel that nobody debugs; seen once.
STRAY_DEBUG_EXCEPTION = "exc_debug_kernel"
EMULATION_FAULTS = (STALE_BREAKPOINT, STRAY_DEBUG_EXCEPTION, STANDSTILL)
INIT_SOURCE = PROJECT / "lab" / "qemu" / "init.c"
TSC_SOURCE = PROJECT / "lab" / "qemu" / "tsc.c"


class BootKernel(Kernel, Protocol):
    """A kernel that QEMU can start; its modules lie in lib/modules below its tree."""

    @property
    def architecture(self) -> str:
        """Debian's name: amd64, arm64 or armhf."""

    @property
    def image(self) -> Path:
        """What QEMU starts."""

    @property
    def config_sha256(self) -> str:
        """The hash of its configuration."""

    def module_closure(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Name and content of modules and of all that they need, except built-in ones."""


@dataclass(frozen=True)
class Qemu:
    """QEMU as a target: a kernel, its CPUs and disks (kinds of targets/qemu_disks.py).

    The guest's environment has the disks' nodes in $STEADY_DISKS, and the path of each module of
    the lab in $STEADY_MODULE_NAME.
    `instruction_ns`, one of INSTRUCTION_NS: the guest's clock counts an instruction of any CPU as
    so much, and jumps where all are idle; the CPUs take turns. 0: it is a real one.
    `arguments`: more for the kernel's command line.
    `reserved_mib`: so much in the middle of its memory is reserved, as if it were persistent
    memory; tests/bench/reserved_memory.sh makes /dev/dax0.0 of it.
    Raises BootError if the computer that the kernel is for has not what is wanted.
    """

    kernel: BootKernel
    cpus: int = CPUS_DEFAULT
    disks: tuple[str, ...] = ()
    _: KW_ONLY
    instruction_ns: int = 0
    arguments: tuple[str, ...] = ()
    reserved_mib: int = 0

    def __post_init__(self) -> None:
        if self.instruction_ns and self.instruction_ns not in INSTRUCTION_NS:
            known = ", ".join(map(str, INSTRUCTION_NS))
            raise BootError(f"an instruction of {self.instruction_ns} ns: QEMU knows {known}")
        if self.machine == PC:
            return
        newer = [kind for kind in self.disks if kind in KINDS and KINDS[kind].newer]
        if newer:
            raise BootError(f"disk {newer[0]}: only {PROGRAM} has it here: choose another one")
        if self.reserved_mib:
            raise BootError(
                f"{self.reserved_mib} MiB reserved: a kernel for {self.kernel.architecture} has no "
                "argument for that (memmap): boot one for amd64"
            )

    @property
    def release(self) -> str:
        """The kernel's release."""
        return self.kernel.release

    @property
    def machine(self) -> Machine:
        """The computer that its kernel is for."""
        return MACHINES[self.kernel.architecture]

    @property
    def config_sha256(self) -> str:
        """The hash of its configuration."""
        return self.kernel.config_sha256

    def identity(self, request: BootRequest) -> dict[str, Any]:
        """All inputs of the guest; how a boot ends also depends on this machine's speed."""
        return {
            "kernel": self.kernel.key,
            "root": guest_root(self.kernel.architecture).key,
            "modules": {n: sha256_file(path) for n, path in _own_modules(self, request).items()},
            "cpus": self.cpus,
            "disks": self.disks,
            "reserved_mib": self.reserved_mib,
            "instruction_ns": self.instruction_ns,
            "arguments": self.arguments,
            "init": _init_text(self, request),
        }

    def boot(self, request: BootRequest) -> BootResult:
        """Run it; QEMU opens no network and no display."""
        _check(self, request)
        init = _init_text(self, request)

        def run() -> BootResult:
            standstill = Standstill(request.work.absolute() / PRIVATE, self.cpus)

            def command(work: Path) -> list[str]:
                machine = [*_machine(self, work), *standstill.arguments()]
                return [*machine, *_shares(self, work), *_disk_arguments(self, work)]

            return run_guest(GuestProcess(init, command, standstill.look), request)

        try:
            return run()
        except BootError as error:
            if not any(fault in str(error) for fault in EMULATION_FAULTS):
                raise
            print(f"steady-lab: QEMU failed, trying again: {error}", file=sys.stderr)
            return run()


def _check(target: Qemu, request: BootRequest) -> None:
    """Raise BootError for what only User Mode Linux has."""
    if request.write_log or request.card_image:
        raise BootError("write logs and images of cards are for User Mode Linux: use disks")
    device = _device_of(request)
    if device and device.kind.stock_drivers is None:
        raise BootError(f"the emulated {device.kind.name} needs User Mode Linux: use disks")
    if device and target.disks:
        raise BootError(f"{device.name} and disks: one or the other")


def _device_of(request: BootRequest) -> DeviceSpec | None:
    return load_device(request.device) if request.device else None


def _init_text(target: Qemu, request: BootRequest) -> str:
    found, device = disks(target.disks), _device_of(request)
    texts = [text for disk in found for text in disk.modules(target.cpus)]
    # Drivers stay: a disk's last request may still be on its way out.
    loads = [_modprobe(text, unload=False) for text in texts]
    loads += [_new_id(*new_id) for disk in found if (new_id := KINDS[disk.kind].new_id)]
    own = _own_modules(target, request)
    seen = {name: f"{GUEST_PROJECT}/{path.relative_to(PROJECT)}" for name, path in own.items()}
    for text in [*request.modules, K2.name]:
        name, *params = text.split()
        loads.append(ModuleLoad(Path(seen[name]), params) if name in seen else _modprobe(text))
    nodes = [disk.node for disk in found]
    if device:
        loads += [_modprobe(name, unload=False) for name in device.kind.stock_drivers or ()]
        loads.append(ModuleLoad(Path(seen[device.kind.module.name]), device.module_params()))
        nodes.append(device.kind.node)
    variables = {f"STEADY_MODULE_{name.upper()}": path for name, path in seen.items()}
    variables["STEADY_DISKS"] = " ".join(nodes)
    variables["STEADY_CPUS"] = str(target.cpus)
    run = GuestRun(
        command=request.command,
        loads=loads,
        node=nodes[-1] if nodes else "",
        environment=variables | dict(request.environment),
    )
    uptime_s_max = UNLIMITED_S if target.instruction_ns else UPTIME_S_MAX
    return init_script(_console(target.machine.terminal), run, uptime_s_max)


def _own_modules(target: Qemu, request: BootRequest) -> dict[str, Path]:
    modules = [*on_request(request.modules), *modules_of(_device_of(request))]
    return build_modules(target.kernel, modules)


def _modprobe(text: str, *, unload: bool = True) -> ModuleLoad:
    name, *params = text.split()
    program = ("modprobe", "-d", GUEST_KERNEL)
    return ModuleLoad(Path(name), params, unload=unload, program=program)


def _new_id(driver: str, identity: str) -> ModuleLoad:
    """Let a PCI driver take one more device; one that knows it already refuses that."""
    tell = 'echo "$1" >"/sys/bus/pci/drivers/$0/new_id" 2>/dev/null || :'
    return ModuleLoad(Path(driver), [identity], unload=False, program=("sh", "-c", tell))


def _console(terminal: str) -> Console:
    mounts = [
        ("mount", "-t", "9p", tag, place, "-o", f"{OPTIONS_9P},{_caching(place)}")
        for place, tag in SHARES.items()
    ]
    # Changing a setting waits for text that is still on the serial line. While the guest powers
    # off, 7.3 cuts it off its root: no program can be started, so its init waits by itself.
    finish = ("stty", "-F", terminal, "-opost")
    return Console(terminal, mounts, finish, "while :; do wait; done")


def _caching(place: str) -> str:
    """Only the work folder changes while the guest runs."""
    return "cache=none" if place == GUEST_WORK else "ro,cache=loose"


def _machine(target: Qemu, work: Path) -> list[str]:
    private = work / PRIVATE
    archive = private / "initramfs.cpio"
    archive.write_bytes(_archive(target.kernel, (private / INIT).read_bytes()))
    return [
        *(*_program(target), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *_clock(target),
        *(*target.machine.board, "-smp", str(target.cpus)),
        *("-m", str(MEMORY_MIB), "-kernel", str(target.kernel.image), "-initrd", str(archive)),
        *target.machine.serial(private / KERNEL_LOG, private / CONSOLE),
        *("-append", " ".join(_kernel_arguments(target))),
    ]


def _program(target: Qemu) -> list[str]:
    """This system's QEMU, or a newer one for what that has not."""
    machine = target.machine
    if any(KINDS[kind].newer for kind in target.disks):
        return newer_program()
    if not shutil.which(machine.program):
        raise BootError(
            f"{machine.program} is missing: install {machine.package} (`scripts/setup stock` does, "
            "too)"
        )
    return [machine.program]


def newer_program() -> list[str]:
    """A newer QEMU, with the libraries and the firmware that it lies next to it."""
    root = emulator_root().path
    libraries = root / "usr/lib/x86_64-linux-gnu"
    firmware = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
    return [
        *("env", f"QEMU_MODULE_DIR={libraries}/qemu"),
        *(str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", str(libraries)),
        str(root / "usr/bin" / PROGRAM),
        *(word for folder in firmware for word in ("-L", str(root / folder))),
    ]


def _reserved(target: Qemu) -> list[str]:
    middle_mib = MEMORY_MIB // 2
    return [f"memmap={target.reserved_mib}M!{middle_mib}M"] if target.reserved_mib else []


def _clock(target: Qemu) -> Sequence[str]:
    if target.instruction_ns:
        shift = target.instruction_ns.bit_length() - 1
        return ("-accel", "tcg,thread=single", "-icount", f"shift={shift},sleep=off")
    return ("-accel", "tcg,thread=multi")


def _kernel_arguments(target: Qemu) -> Sequence[str]:
    return (
        *(f"console={target.machine.console}", "loglevel=7", "printk.devkmsg=on", "panic=-1"),
        *("oops=panic", "random.trust_cpu=on", "no_hash_pointers"),
        *("sysctl.kernel.hung_task_panic=1", *target.machine.kernel_arguments),
        *_reserved(target),
        *_known_rate(target),
        *target.arguments,
    )


def _known_rate(target: Qemu) -> list[str]:
    """What a PC would measure, and on a busy machine measures wrong. Counted clocks are exact."""
    if target.machine != PC or target.instruction_ns:
        return []
    return [f"tsc_early_khz={_tsc_khz()}"]


@functools.cache
def _tsc_khz() -> int:
    done = subprocess.run([_built(TSC_SOURCE)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _archive(kernel: BootKernel, script: bytes) -> bytes:
    modules = kernel.module_closure(ROOT_MODULES)
    files = {f"modules/{order:02d}-{name}": body for order, (name, body) in enumerate(modules)}
    files |= {"init": _built(INIT_SOURCE, kernel.architecture).read_bytes(), "init.sh": script}
    return initramfs(files, ("dev", "modules", "root"))


@functools.cache
def _built(source: Path, architecture: str = NATIVE) -> Path:
    name = f"{source.stem}-{architecture}-{sha256_file(source)[:16]}"
    program = BUILD / "qemu" / name
    if not program.is_file():
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static"]
        compile_inside([source], program, flags, architecture=architecture)
    return program


def _shares(target: Qemu, work: Path) -> list[str]:
    places = {
        "root": guest_root(target.kernel.architecture).path,
        "work": work,
        "project": PROJECT,
        "kernel": target.kernel.tree,
    }
    words: list[str] = []
    for tag, path in places.items():
        access = "" if tag == "work" else ",readonly=on"
        words += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none{access}"]
    return words


def _disk_arguments(target: Qemu, work: Path) -> list[str]:
    found: list[Disk] = disks(target.disks)
    return [word for disk in found for word in disk.arguments(target.cpus, work / PRIVATE)]
