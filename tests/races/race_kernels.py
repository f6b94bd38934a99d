# SPDX-License-Identifier: MIT OR Apache-2.0
"""k2 and chario on kernels that look for races, on three CPUs; `make test-races`.

Any report in the kernel's log fails a test; and a seeded bug of each kind must be reported.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_scripts import SCRIPTS, header
from steady_lab.kernels.architecture import SANITIZERS
from steady_lab.kernels.modules import Module, build_module
from steady_lab.kernels.watching import WATCHED_RELEASES, watching_kernel
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootError, BootRequest, BootResult

sys.path.insert(0, str(PROJECT / "tests" / "stock"))
import guest

HERE = Path(__file__).parent
STOCK = PROJECT / "tests" / "stock"
CANARY = Module("canary", PROJECT / "tests" / "canary")
FAST, PCI = ("virtio", "nvme", "null"), ("virtio", "nvme")
# Those that need no virtual time, and one that needs schedulers stock kernels have not loaded.
KERNEL_TESTS = sorted(
    path.stem
    for path in SCRIPTS.glob("k2_*.sh")
    if header(path).get("STOCK") == "yes" or path.stem == "k2_everything_changes_under_load"
)
TIMEOUT_S = 3600

pytestmark = guest.needs_qemu


KERNELS = [f"{release}-{one}" for release in WATCHED_RELEASES for one in SANITIZERS]
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(autouse=True)
def cell(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """What tests/stock/tested.py makes a cell of."""
    for name, value in request.node.callspec.params.items():
        text = " ".join(value) if isinstance(value, tuple) else value
        record_property(name, value.stem if isinstance(value, Path) else text)


def run(
    kernel: str,
    script: Path,
    work: Path,
    disks: tuple[str, ...],
    modules: tuple[str, ...] = (),
    **environment: str,
) -> BootResult:
    found = {
        "STEADY_RACES": f"{GUEST_PROJECT}/tests/races",
        "STEADY_TRANSFERS": "200",
        **environment,
    }
    built = watching_kernel(*kernel.split("-"))
    return guest.run_on(built, script, work, disks, modules, found, TIMEOUT_S)


@each_kernel
@pytest.mark.parametrize("disks", [FAST, ("sd",)], ids="-".join)
@pytest.mark.parametrize(
    "script", [STOCK / "data_under_load.sh", HERE / "k2_under_load.sh"], ids=lambda path: path.stem
)
def test_k2(script: Path, disks: tuple[str, ...], kernel: str, work: Path) -> None:
    assert run(kernel, script, work, disks).exit_status == 0


@each_kernel
def test_k2_when_disks_vanish(kernel: str, work: Path) -> None:
    assert run(kernel, STOCK / "removal_under_load.sh", work, PCI).exit_status == 0


@each_kernel
def test_k2_in_the_kernel_tests(kernel: str, work: Path) -> None:
    null_blk = ("null_blk nr_devices=0",)
    names = " ".join(KERNEL_TESTS)
    script = HERE / "k2_kernel_tests.sh"
    assert run(kernel, script, work, (), null_blk, STEADY_SCRIPTS=names).exit_status == 0


@each_kernel
def test_chario(kernel: str, work: Path) -> None:
    script = HERE / "chario_under_load.sh"
    assert run(kernel, script, work, ("sd",), ("chario",)).exit_status == 0


BUGS = {
    "kcsan": {"race": "BUG: KCSAN: data-race in count"},
    "kasan": {
        "race_to_free": "BUG: KASAN: .*use-after-free in use",
        "lock_order": "possible circular locking",
        "sleep": "sleeping function called from invalid context",
    },
}


@pytest.mark.parametrize(
    ("kernel", "bug"), [(name, bug) for name in KERNELS for bug in BUGS[name.split("-")[1]]]
)
def test_a_seeded_bug_is_found(kernel: str, bug: str, work: Path) -> None:
    built = watching_kernel(*kernel.split("-"))
    canary = build_module(built, CANARY)
    seen = f"{GUEST_PROJECT}/{canary.relative_to(PROJECT)}"
    script = f"insmod {seen} bug={bug}; sleep 10; rmmod canary"
    with pytest.raises(BootError, match=BUGS[built.flavour][bug]):
        Qemu(built, guest.CPUS).boot(BootRequest(["sh", "-c", script], work))
