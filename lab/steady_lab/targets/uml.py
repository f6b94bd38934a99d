# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run one command on the lab kernel, in virtual time, next to an emulated device.

UML runs inside a bubblewrap sandbox, without network and without capabilities. Of the host it sees
its work folder, the only one that it can write to, and the clone; all else is the lab's own root.
Console and kernel log go to files, not pipes: with a full pipe the guest's clock would run on while
it waits for the reader, and results would depend on the host.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steady_lab.devices.kinds import MODULES
from steady_lab.devices.spec import DeviceSpec, load_device
from steady_lab.hashes import sha256_file
from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.host import build_preload
from steady_lab.kernels.modules import K2, SHADOW, build_modules, on_request
from steady_lab.kernels.source import RELEASES, named_source
from steady_lab.paths import GUEST_KERNEL, GUEST_WORK, PROJECT
from steady_lab.root.root import guest_root
from steady_lab.targets.guest_init import (
    SHARED_PLACES,
    Console,
    GuestRun,
    ModuleLoad,
    init_script,
    init_script_in_turn,
)
from steady_lab.targets.guest_run import CONSOLE as CONSOLE_LOG
from steady_lab.targets.guest_run import INIT, KERNEL_LOG, PRIVATE
from steady_lab.targets.in_turn import results_in_turn
from steady_lab.targets.kept_boots import kept_boots
from steady_lab.targets.target import BootError, BootRequest, BootResult, RunError, modules_of
from steady_lab.targets.uml_guest import UmlGuest
from steady_lab.targets.uml_modules import module_loads, seen_by_guest

VIRTUAL_TIMEOUT_S_DEFAULT = 36_000
MEMORY_MIB = 512
# No kernel here has SLUB's checks on. Without them compiled in, the argument goes into init's
# environment, so the events and results that are committed for these releases depend on it.
RELEASE_ARGUMENTS = dict.fromkeys(("6.12", "7.3"), ("slab_debug=-",))
# There a disk's node is made well before its partitions are looked for.
NODE_COMES_EARLY = "7.3"
# 2026-01-01 00:00:00 UTC in nanoseconds: every guest starts at the same time of day.
VIRTUAL_START_NS = 1_767_225_600_000_000_000


def _hostfs_options(place: str) -> str:
    return place if place == GUEST_WORK else f"ro,{place}"


CONSOLE = Console(
    "/dev/tty0",
    [
        ("mount", "-t", "hostfs", "none", place, "-o", _hostfs_options(place))
        for place in SHARED_PLACES
    ],
)


def _print_standstill(finding: str) -> None:
    print(f"steady-lab: {finding}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Uml:
    """User Mode Linux as a target: a lab kernel, and how to run it.

    `wrapper` is a command that runs the kernel, given to it as further arguments; folders are for
    it where the guest has them.
    `on_standstill` is called for a guest whose clock stops; the boot continues.
    `has_k2`: k2 is a part of the kernel, so no module of it is loaded.
    """

    kernel: LabKernel
    virtual_timeout_s: int = VIRTUAL_TIMEOUT_S_DEFAULT
    wrapper: Sequence[str] = ()
    on_standstill: Callable[[str], None] = _print_standstill
    has_k2: bool = False

    @property
    def release(self) -> str:
        """The kernel's release."""
        return self.kernel.release

    @property
    def config_sha256(self) -> str:
        """The hash of its configuration."""
        return self.kernel.config_sha256

    def identity(self, request: BootRequest) -> dict[str, Any]:
        """All inputs of the guest: kernel, root, modules, command line, environment, init."""
        return _identity(self, [request], _init_text(self, request))

    def guest(self, request: BootRequest) -> UmlGuest:
        """Return the boot as planned, which another machine can run."""
        return _guest(self, request, _init_text(self, request))

    def boot(self, request: BootRequest) -> BootResult:
        """Run it here, or replay the boot that a test has kept.

        A boot that its caller follows or ends is not kept: its result depends on the caller.
        """
        is_followed = request.on_output or request.cancelled
        return _boot(self, [request], request, _init_text(self, request), not is_followed)

    def boot_in_turn(self, requests: Sequence[BootRequest]) -> list[BootResult | BootError]:
        """Run requests one after the other in one guest; each gets its result or its error.

        Their work folders have one parent. A request's own time limit is for all of them. Raises
        BootError if the guest could not start.
        """
        work = requests[0].work.parent
        init = _init_text_in_turn(self, requests)
        timeout_s = sum(request.timeout_s for request in requests)
        whole = replace(requests[0], work=work, timeout_s=timeout_s)
        with suppress(RunError):
            _boot(self, requests, whole, init, may_be_kept=True)
        output, log = (
            (work / PRIVATE / name).read_text(encoding="utf-8", errors="replace")
            for name in (CONSOLE_LOG, KERNEL_LOG)
        )
        return results_in_turn(output, log, len(requests))


def _identity(target: Uml, requests: Sequence[BootRequest], init: str) -> dict[str, Any]:
    wanted = [K2]
    for request in requests:
        wanted += [*modules_of(_device_of(request)), *on_request(request.modules)]
    files = {
        **build_modules(target.kernel, list(dict.fromkeys(wanted))),
        "preload": build_preload(),
    }
    return {
        "kernel": target.kernel.key,
        "root": guest_root().key,
        "files": {name: sha256_file(path) for name, path in files.items()},
        "command": [*target.wrapper, *_kernel_command(target.kernel)],
        "environment": _environment(requests[0], target.kernel),
        "init": init,
    }


def _guest(target: Uml, request: BootRequest, init: str) -> UmlGuest:
    return UmlGuest(
        kernel=target.kernel,
        init=init,
        environment=_environment(request, target.kernel),
        words=(*target.wrapper, *_kernel_command(target.kernel)),
        root=guest_root().path,
        project=PROJECT,
    )


def _boot(
    target: Uml, requests: Sequence[BootRequest], whole: BootRequest, init: str, may_be_kept: bool
) -> BootResult:
    """Boot with `init`; `whole` has the work folder and the time limit of all `requests`."""

    def run() -> BootResult:
        return _guest(target, whole, init).boot(whole, target.on_standstill)

    kept = kept_boots()
    if kept is None or not may_be_kept or target.on_standstill is not _print_standstill:
        return run()
    return kept.boot(_identity(target, requests, init), whole, run)


def uml(release: str = RELEASES[0], flavour: str = "base") -> Uml:
    """The lab kernel of a release; builds it if necessary."""
    return Uml(build_kernel(named_source(None, release), flavour))


def _device_of(request: BootRequest) -> DeviceSpec | None:
    if not request.device:
        return None
    device = load_device(request.device)
    if request.write_log and not device.kind.write_log:
        raise BootError(f"{request.device}: the kind {device.kind.name} has no write log")
    device = replace(device, write_log=request.write_log)
    return replace(device, backing_file=request.card_image) if request.card_image else device


def _init_text(target: Uml, request: BootRequest) -> str:
    return init_script(CONSOLE, _guest_run(target, request), target.virtual_timeout_s)


def _init_text_in_turn(target: Uml, requests: Sequence[BootRequest]) -> str:
    runs = [replace(_guest_run(target, one), folder=one.work.name) for one in requests]
    return init_script_in_turn(CONSOLE, runs, target.virtual_timeout_s)


def _guest_run(target: Uml, request: BootRequest) -> GuestRun:
    kernel, device = target.kernel, _device_of(request)
    files = build_modules(kernel, [*MODULES, *on_request(request.modules)])
    built = {name: seen_by_guest(path, kernel) for name, path in files.items()}
    loads = [ModuleLoad(built[name], unload=False) for name in built if name == SHADOW.name]
    loads += _kernel_loads(kernel, device.kind.drivers if device else (), request.modules)
    if not target.has_k2:
        loads.append(ModuleLoad(built[K2.name]))
    if device:
        loads.append(_device_load(built[device.kind.module.name], device))
    node = device.kind.node if device else ""
    return GuestRun(
        command=request.command,
        loads=loads,
        node=node,
        node_comes_early=kernel.release == NODE_COMES_EARLY,
        environment=_variables(built, node) | dict(request.environment),
    )


def _kernel_loads(
    kernel: LabKernel, drivers: Sequence[str], more: Sequence[str]
) -> list[ModuleLoad]:
    """The kernel's own modules; drivers of the device stay until the kernel ends.

    On 6.12 the reading of a partition table holds them for some time after its end.
    """
    loads = module_loads(kernel, [*drivers, *more])
    return [replace(load, unload=load.unload and load.path.stem not in drivers) for load in loads]


def _device_load(path: Path, device: DeviceSpec) -> ModuleLoad:
    return ModuleLoad(path, device.module_params(), unload=device.kind.unload)


def _variables(built: Mapping[str, Path], node: str) -> dict[str, str]:
    """The device; and STEADY_MODULE_K2 and so on, for tests that load a module again."""
    modules = {f"STEADY_MODULE_{name.upper()}": str(path) for name, path in built.items()}
    return {**modules, "STEADY_DEVICE": node}


def _environment(request: BootRequest, kernel: LabKernel) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(seen_by_guest(build_preload(), kernel)),
        "STEADY_RANDOM_SEED": str(request.random_seed),
    }


def _kernel_command(kernel: LabKernel) -> list[str]:
    return [
        *("/usr/bin/setarch", "-R", f"{GUEST_KERNEL}/{kernel.linux.name}"),
        f"mem={MEMORY_MIB}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        f"init={GUEST_WORK}/{PRIVATE}/{INIT}",
        *("time-travel=inf-cpu", f"time-travel-start={VIRTUAL_START_NS}"),
        *("norandmaps", "random.trust_cpu=on", "no_hash_pointers", "uml_dir=/dev/shm/"),
        *("con0=null,fd:0", "con1=null,fd:1", "con=null", "console=tty1"),
        *("loglevel=7", "printk.devkmsg=on", "oops=panic", "sysctl.kernel.hung_task_panic=1"),
        *RELEASE_ARGUMENTS.get(kernel.release, ()),
    ]
