# SPDX-License-Identifier: MIT OR Apache-2.0
"""The scripts of tests/kernel, and how each is run: its header says next to which device.

DESCRIPTION: what behaviour holds. DEVICE: a name in experiments/devices, or none. FLAVOUR: debug or
base, the only one that it can run on [see flavour()]. MODULES: modules of the kernel to load, each
with its parameters, `;` between them. KERNELS: the releases that have this behaviour [all]; the
script says why the others do not. ALONE: why it cannot share a boot with others [it can].
COMPAT: the files of kernel/compat that it covers; `make test` then runs it on 6.1, too.
STOCK: yes, if it needs no virtual time and nothing that Debian's kernels lack: then `make
test-stock` runs it there, too (tests/stock/stock_kernels.py).
Exit status 0 passes, 77 skips (the last line says why), anything else fails, and so does a kernel
log with a sign of trouble. The script finds its release in $STEADY_KERNEL.
"""

import fcntl
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from releases import KERNEL_TEST_RELEASES, WHOLE_RELEASES
from steady_lab.kernels.source import RELEASES as ALL_RELEASES
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.root.lock import NATIVE
from steady_lab.targets.target import WALL_TIMEOUT_S_DEFAULT, BootRequest, BootResult
from steady_lab.targets.uml import uml

SCRIPTS = PROJECT / "tests" / "kernel"
UAPI = PROJECT / "kernel" / "uapi"
STATUS_SKIP = 77


@cache
def header(script: Path) -> dict[str, str]:
    """The `# KEY: value` lines of a test script."""
    return dict(re.findall(r"^# ([A-Z]+): (.+)$", script.read_text(), re.MULTILINE))


def helpers_folder(architecture: str = NATIVE) -> Path:
    """Where the programs lie that the scripts find in $STEADY_TESTS_BIN."""
    return BUILD / "tests" / ("bin" if architecture == NATIVE else f"bin-{architecture}")


def build_helpers(folder: Path = SCRIPTS, architecture: str = NATIVE) -> None:
    """Compile a folder's *.c, once for all workers."""
    helpers = helpers_folder(architecture)
    helpers.mkdir(parents=True, exist_ok=True)
    with (helpers / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        headers = [*folder.glob("*.h"), *UAPI.glob("*.h")]
        headers_s = max(path.stat().st_mtime for path in headers)
        for source in folder.glob("*.c"):
            target = helpers / source.stem
            newest_s = max(headers_s, source.stat().st_mtime)
            if target.exists() and target.stat().st_mtime > newest_s:
                continue
            flags = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
            compile_inside([source], target, flags, UAPI, architecture)


@cache
def cases() -> list[tuple[str, Path]]:
    """Each release with each script that is for it.

    On a release that is not whole, those that cover a difference between the kernels, that no
    whole release has, or that need the base kernel, and none that needs the debug kernel.
    """
    scripts = sorted(path for path in SCRIPTS.glob("*.sh") if not path.name.startswith("lib"))
    return [
        (release, path)
        for release in KERNEL_TEST_RELEASES
        for path in scripts
        if is_for(path, release) and is_wanted(path, release)
    ]


def is_wanted(script: Path, release: str) -> bool:
    """Whether a script runs on a release that it is for.

    What needs the base kernel runs on releases that are not whole, if there are any: a second
    kernel of a whole release takes longer to build than these scripts to run.
    """
    only = header(script).get("FLAVOUR")
    if only == "base" and set(KERNEL_TEST_RELEASES) > set(WHOLE_RELEASES):
        return release not in WHOLE_RELEASES
    return release in WHOLE_RELEASES or (only != "debug" and tells_releases_apart(script))


def tells_releases_apart(script: Path) -> bool:
    """Whether it covers a file of kernel/compat, or is for none of the whole releases."""
    return "COMPAT" in header(script) or not any(is_for(script, one) for one in WHOLE_RELEASES)


def is_for(script: Path, release: str) -> bool:
    """Whether the header wants this release; raises ValueError if it names an unknown one."""
    wanted = header(script).get("KERNELS", " ".join(ALL_RELEASES)).split()
    for name in wanted:
        if name not in ALL_RELEASES:
            raise ValueError(f"{script}: KERNELS: {name}: expected {' or '.join(ALL_RELEASES)}")
    return release in wanted


def request_of(
    script: Path,
    release: str,
    work: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = WALL_TIMEOUT_S_DEFAULT,
) -> BootRequest:
    """What the script's header wants, with more in its environment."""
    keys = header(script)
    return BootRequest(
        command=["sh", f"{GUEST_PROJECT}/{script.relative_to(PROJECT)}"],
        work=work,
        device=device_file(script),
        modules=keys["MODULES"].split(";") if "MODULES" in keys else [],
        timeout_s=timeout_s,
        environment={
            "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
            "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
            "STEADY_KERNEL": release,
            **(environment or {}),
        },
    )


def device_file(script: Path) -> Path | None:
    """The spec of the device that the header names, None if it names none."""
    name = header(script).get("DEVICE", "none")
    return None if name == "none" else PROJECT / "experiments" / "devices" / f"{name}.toml"


def run(
    script: Path,
    release: str,
    work: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = WALL_TIMEOUT_S_DEFAULT,
) -> BootResult:
    """Boot what the script's header wants and run it there, alone."""
    build_helpers()
    request = request_of(script, release, work, environment, timeout_s)
    return uml(release, flavour(script, release)).boot(request)


def flavour(script: Path, release: str) -> str:
    """Return which kernel it runs on: debug, except on a release that is not whole.

    The debug kernel of such a release takes longer to build than its scripts to run.
    """
    return header(script).get("FLAVOUR", "debug" if release in WHOLE_RELEASES else "base")
