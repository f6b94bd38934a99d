# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every tests/kernel/*.sh in a guest of each release; its header says next to which device.

DESCRIPTION: what behaviour holds. DEVICE: a name in experiments/devices, or none. FLAVOUR: debug
(default) or base. MODULES: modules of the kernel to load, each with its parameters, `;` between
them. KERNELS: the releases that have this behaviour [all]; the script says why the others do not.
STOCK: yes, if it needs no virtual time and nothing that Debian's kernels lack: then `make
test-stock` runs it there, too (tests/stock/stock_kernels.py).
Exit status 0 passes, 77 skips (the last line says why), anything else fails, and so does a kernel
log with a sign of trouble. The script finds its release in $STEADY_KERNEL.
"""

import fcntl
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from releases import RELEASES
from steady_lab.kernels.source import RELEASES as ALL_RELEASES
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.root.lock import NATIVE
from steady_lab.targets.target import WALL_TIMEOUT_S_DEFAULT, BootRequest, BootResult
from steady_lab.targets.uml import uml

SCRIPTS = PROJECT / "tests" / "kernel"
UAPI = PROJECT / "kernel" / "uapi"
STATUS_SKIP = 77


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


def cases() -> list[tuple[str, Path]]:
    """Each release with each script that is for it."""
    scripts = sorted(set(SCRIPTS.glob("*.sh")) - {SCRIPTS / "lib.sh"})
    return [(release, path) for release in RELEASES for path in scripts if is_for(path, release)]


def is_for(script: Path, release: str) -> bool:
    """Whether the header wants this release; raises ValueError if it names an unknown one."""
    wanted = header(script).get("KERNELS", " ".join(ALL_RELEASES)).split()
    for name in wanted:
        if name not in ALL_RELEASES:
            raise ValueError(f"{script}: KERNELS: {name}: expected {' or '.join(ALL_RELEASES)}")
    return release in wanted


def run(
    script: Path,
    release: str,
    work: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = WALL_TIMEOUT_S_DEFAULT,
) -> BootResult:
    """Boot what the script's header wants and run it there, with more in its environment."""
    keys = header(script)
    device = None
    if keys.get("DEVICE", "none") != "none":
        device = PROJECT / "experiments" / "devices" / f"{keys['DEVICE']}.toml"
    build_helpers()
    return uml(release, keys.get("FLAVOUR", "debug")).boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/{script.relative_to(PROJECT)}"],
            work=work,
            device=device,
            modules=keys["MODULES"].split(";") if "MODULES" in keys else [],
            timeout_s=timeout_s,
            environment={
                "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
                "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
                "STEADY_KERNEL": release,
                **(environment or {}),
            },
        )
    )


@pytest.mark.parametrize(
    ("release", "script"), [pytest.param(*case, id=f"{case[0]}-{case[1].stem}") for case in cases()]
)
def test_kernel(release: str, script: Path, work: Path) -> None:
    print(f"replay: scripts/test -k {release}-{script.stem}")
    result = run(script, release, work)
    print(result.output)
    if result.exit_status == STATUS_SKIP:
        pytest.skip(result.output.strip().splitlines()[-1])
    assert result.exit_status == 0, f"{header(script)['DESCRIPTION']}\n{result.output[-3000:]}"
