# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run one command on the lab kernel, in virtual time, next to an emulated device.

UML runs inside a bubblewrap sandbox, without network and without capabilities. Of the host it sees
its work folder, which alone it can write to, and the clone; all else is the lab's own root. Console
and kernel log go to files, not pipes: a pipe that fills up would let the guest's clock run on while
it waits for the reader, and results would depend on the host.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from steady_lab.boots.guest import ModuleLoad, init_script
from steady_lab.boots.kernel_log import find_exit_status, find_trouble
from steady_lab.boots.standstill import Standstill
from steady_lab.devices.kinds import MODULES
from steady_lab.devices.spec import load_device
from steady_lab.errors import LabError
from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.host import build_preload
from steady_lab.kernels.modules import K2, SHADOW, build_modules
from steady_lab.kernels.source import RELEASES, find_source
from steady_lab.paths import GUEST_KERNEL, GUEST_PROJECT, GUEST_WORK, PROJECT
from steady_lab.root.root import guest_root
from steady_lab.root.sandbox import Place, sandbox

WALL_TIMEOUT_S_DEFAULT = 600.0
VIRTUAL_TIMEOUT_S_DEFAULT = 36_000
MEMORY_MIB = {"base": 512, "debug": 1024}
# 6.12 on UML with a gcc before 13: KASAN checks every memset(), even those in mm/slub.c, and
# reports the red zones that SLUB's own debugging writes. What they are to find, KASAN finds.
RELEASE_ARGUMENTS = {"6.12": ("slab_debug=-",)}
POLL_INTERVAL_S = 0.02
# 2026-01-01 00:00:00 UTC in nanoseconds: every guest starts at the same time of day.
VIRTUAL_START_NS = 1_767_225_600_000_000_000
# In the work folder: the boot's own files, and the guest's init among them.
PRIVATE = ".steady"
INIT = "init.sh"


class BootError(LabError):
    """The kernel misbehaved, the guest could not start, or a time limit was reached."""


def _print_standstill(finding: str) -> None:
    print(f"steady-lab: {finding}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class BootRequest:
    """What to run.

    `modules` are further modules to load first: the name of one of the kernel's own, or the path of
    a .ko file, each with its parameters behind it ("null_blk nr_devices=0"). What they need is
    loaded before them.
    `card_image` is a file in `work` with the card's contents, whatever the device's spec says;
    `write_log` one for everything that is done to them (docs/devices.md).
    `kernel` stands for `flavour` and `release`.
    `random_seed` decides the guest's random numbers, UUIDs included: boots after one another on the
    same card need different ones.
    `wrapper` is a command that runs the kernel, given to it as further arguments; folders are for
    it where the guest has them.
    `on_standstill` is told of a guest whose clock stands still, which decides nothing.
    `cancelled`, once set by another thread, ends the guest and makes `boot` raise BootError.
    """

    command: Sequence[str]
    work: Path
    device: Path | None = None
    card_image: str | None = None
    write_log: str | None = None
    flavour: str = "base"
    release: str = RELEASES[0]
    kernel: LabKernel | None = None
    modules: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    random_seed: int = 0
    timeout_s: float = WALL_TIMEOUT_S_DEFAULT
    virtual_timeout_s: int = VIRTUAL_TIMEOUT_S_DEFAULT
    on_output: Callable[[str], None] | None = None
    on_standstill: Callable[[str], None] = _print_standstill
    wrapper: Sequence[str] = ()
    cancelled: threading.Event | None = None


@dataclass(frozen=True)
class BootResult:
    """How it ended: the command's exit status and output, and the whole kernel log."""

    exit_status: int
    output: str
    kernel_log: str
    wall_s: float


def boot(request: BootRequest) -> BootResult:
    """Boot, run the command, power off.

    Raises BootError if the kernel log holds a sign of trouble, the time limit is reached or the
    guest ends without reporting an exit status. The command's own failure is only reported.
    """
    work = request.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    with _owned(work):
        return _boot_in(request, work)


@contextmanager
def _owned(work: Path) -> Iterator[None]:
    """Hold the work folder for one guest: a second one would take the first one's logs away."""
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BootError(f"{work}: another guest is using this work folder") from None
        yield
    finally:
        os.close(descriptor)


def _boot_in(request: BootRequest, work: Path) -> BootResult:
    private = work / PRIVATE
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir()
    kernel = request.kernel or build_kernel(find_source(None, request.release), request.flavour)
    init = private / INIT
    init.write_text(_init_text(request, kernel, work))
    init.chmod(0o755)
    start_s = time.monotonic()
    standstill = Standstill(kernel)
    output, log, ended = _run(request, kernel, work, private, standstill)
    wall_s = time.monotonic() - start_s
    return _judge(request, output, log, ended, wall_s, standstill.finding)


def _init_text(request: BootRequest, kernel: LabKernel, work: Path) -> str:
    files = build_modules(kernel, MODULES)
    built = {name: _seen_by_guest(path, kernel) for name, path in files.items()}
    loads = [ModuleLoad(built[name], unload=False) for name in built if name == SHADOW.name]
    loads += _module_loads(kernel, request.modules)
    loads.append(ModuleLoad(built[K2.name]))
    node = ""
    if request.device:
        device = load_device(request.device)
        if request.card_image:
            device = replace(device, backing_file=request.card_image)
        device = replace(device, write_log=request.write_log)
        loads.append(ModuleLoad(built[device.kind.module.name], device.module_params()))
        node = device.kind.node
    return init_script(
        command=request.command,
        loads=loads,
        node=node,
        environment=_variables(built, node) | dict(request.environment),
        virtual_timeout_s=request.virtual_timeout_s,
    )


def _variables(built: Mapping[str, Path], node: str) -> dict[str, str]:
    """The device; and STEADY_MODULE_K2 and so on, for tests that load a module again."""
    modules = {f"STEADY_MODULE_{name.upper()}": str(path) for name, path in built.items()}
    return {**modules, "STEADY_DEVICE": node}


def _module_loads(kernel: LabKernel, texts: Sequence[str]) -> list[ModuleLoad]:
    """What to insert, in order: each module behind those it needs, none twice."""
    loads: dict[Path, ModuleLoad] = {}
    for text in texts:
        name, *params = text.split()
        path = Path(name).absolute() if name.endswith(".ko") else _in_tree_module(kernel, name)
        for needed in _needed_modules(kernel, path):
            loads.setdefault(needed, ModuleLoad(_seen_by_guest(needed, kernel), unload=False))
        loads[path] = ModuleLoad(_seen_by_guest(path, kernel), params)
    return list(loads.values())


def _needed_modules(kernel: LabKernel, path: Path) -> list[Path]:
    """All that `path` needs, directly or not, in the order of loading."""
    depends = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    needed: list[Path] = []
    for name in filter(None, depends.group(1).decode().split(",") if depends else []):
        module = _in_tree_module(kernel, name)
        needed += [*_needed_modules(kernel, module), module]
    return list(dict.fromkeys(needed))


def _seen_by_guest(path: Path, kernel: LabKernel) -> Path:
    """Where the guest has a file of the clone or of the kernel's objects."""
    for host, guest in ((PROJECT, GUEST_PROJECT), (kernel.tree, GUEST_KERNEL)):
        if path.is_relative_to(host):
            return Path(guest) / path.relative_to(host)
    return path


def _in_tree_module(kernel: LabKernel, name: str) -> Path:
    found = sorted(kernel.tree.rglob(f"{name}.ko"))
    if not found:
        raise BootError(f"the lab kernel has no module {name}; see lab/kernel/base.config")
    return found[0]


def _sandbox(request: BootRequest, kernel: LabKernel, work: Path) -> list[str]:
    """The guest's folders are where the guest has them: no path of this machine reaches it.

    The kernel's random numbers depend on its command line, for one.
    """
    environment = {
        "LD_PRELOAD": str(_seen_by_guest(build_preload(), kernel)),
        "STEADY_RANDOM_SEED": str(request.random_seed),
    }
    places = [
        Place(PROJECT, GUEST_PROJECT),
        Place(kernel.tree, GUEST_KERNEL),
        Place(work, GUEST_WORK, writable=True),
    ]
    return sandbox(guest_root().path, places, environment)


def _kernel_command(kernel: LabKernel) -> list[str]:
    return [
        *("/usr/bin/setarch", "-R", f"{GUEST_KERNEL}/{kernel.linux.name}"),
        f"mem={MEMORY_MIB[kernel.flavour]}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        f"init={GUEST_WORK}/{PRIVATE}/{INIT}",
        *("time-travel=inf-cpu", f"time-travel-start={VIRTUAL_START_NS}"),
        *("norandmaps", "random.trust_cpu=on", "no_hash_pointers", "uml_dir=/dev/shm/"),
        *("con0=null,fd:0", "con1=null,fd:1", "con=null", "console=tty1"),
        *("loglevel=7", "printk.devkmsg=on", "oops=panic", "sysctl.kernel.hung_task_panic=1"),
        *RELEASE_ARGUMENTS.get(kernel.release, ()),
    ]


def _run(
    request: BootRequest, kernel: LabKernel, work: Path, private: Path, standstill: Standstill
) -> tuple[str, str, bool]:
    """Returns console output, kernel log, and whether the guest ended within the time limit."""
    console_path, log_path = private / "console.log", private / "kernel.log"
    with console_path.open("ab") as console, log_path.open("ab") as log:
        process = subprocess.Popen(
            [*_sandbox(request, kernel, work), *request.wrapper, *_kernel_command(kernel)],
            stdin=console,  # To write to: the kernel's console 0.
            stdout=log,
            stderr=log,
            env={"PATH": os.defpath},
        )
        try:
            ended = _follow(process, console_path, request, standstill)
        finally:
            process.kill()
            process.wait()
    return _text(console_path), _text(log_path), ended


def _follow(
    process: "subprocess.Popen[bytes]",
    console: Path,
    request: BootRequest,
    standstill: Standstill,
) -> bool:
    """Pass the console on as it grows until the guest ends; False if it ran out of time."""
    deadline_s = time.monotonic() + request.timeout_s
    with console.open(encoding="utf-8", errors="replace") as stream:
        while True:
            ended = process.poll() is not None
            text = stream.read()
            if text and request.on_output:
                request.on_output(text)
            if ended:
                return True
            if time.monotonic() > deadline_s:
                return False
            if request.cancelled and request.cancelled.is_set():
                raise BootError("cancelled")
            if finding := standstill.look(process.pid, time.monotonic()):
                request.on_standstill(finding)
            time.sleep(POLL_INTERVAL_S)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _judge(
    request: BootRequest, output: str, log: str, ended: bool, wall_s: float, standstill: str
) -> BootResult:
    where = f"kernel log: {request.work.absolute()}/.steady/kernel.log"
    trouble = find_trouble(log)
    if trouble:
        raise BootError(f"the kernel reported trouble: {trouble[0]}\n{_excerpt(log)}\n{where}")
    if not ended:
        raise BootError(
            f"still running after {request.timeout_s:g} s, the wall time limit; a loop that never "
            "waits would make the guest's clock stand still (docs/reference/steady-lab.md)\n"
            f"{standstill and f'last seen: {standstill}'}\n"
            f"output so far:\n{_tail(output)}\n{_tail(log)}\n{where}"
        )
    status = find_exit_status(log)
    if status is None:
        raise BootError(f"the guest ended without an exit status\n{output}{_tail(log)}\n{where}")
    return BootResult(status, output, log, wall_s)


def _tail(log: str, lines: int = 25) -> str:
    return "\n".join(log.splitlines()[-lines:])


def _excerpt(log: str) -> str:
    """The log from just before the first sign of trouble on."""
    lines = log.splitlines()
    first = next((index for index, line in enumerate(lines) if find_trouble(line)), 0)
    return "\n".join(lines[max(0, first - 5) : first + 60])
