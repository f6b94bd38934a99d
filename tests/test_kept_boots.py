# SPDX-License-Identifier: MIT OR Apache-2.0
"""A boot is replayed only if nothing has changed that it depends on, and its test has passed."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from steady_lab.kernels.build import LabKernel
from steady_lab.kernels.host import build_preload
from steady_lab.kernels.modules import K2, Module, build_module, build_modules
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.root.root import guest_root
from steady_lab.targets import kept_boots
from steady_lab.targets.target import BootError, BootRequest, BootResult
from steady_lab.targets.uml import Uml
from verdicts import WITHOUT_STEADY

pytestmark = [
    pytest.mark.boots_again("the boots that are kept here are of these tests' own folders"),
    pytest.mark.reads(*WITHOUT_STEADY),
]

SCRIPT = """
cat {clone}/data; ls {clone}/names; cat {clone}/missing 2>/dev/null; cat given
echo written >made; mkdir -p folder; ln -sf ../made folder/link
"""


@dataclass
class Setting:
    """A boot with one input of each kind. `clone`: a folder of the clone that the guest reads."""

    target: Uml
    request: BootRequest
    clone: Path
    folder: Path
    patch: pytest.MonkeyPatch
    given: str = "given\n"

    def prepare(self) -> None:
        shutil.rmtree(self.request.work, ignore_errors=True)
        self.request.work.mkdir()
        (self.request.work / "given").write_text(self.given)

    def boot(self) -> BootResult:
        self.prepare()
        return self.target.boot(self.request)

    def key(self) -> str:
        """Of all that is known before the start."""
        self.prepare()
        return kept_boots._key(self.target.identity(self.request), self.request.work)

    def ran(self) -> bool:
        """Boot as a test does that passes; say whether the guest ran."""
        kept_boots.begin(self.folder)
        self.boot()
        replayed, ran = kept_boots.used(self.folder)
        kept_boots.settle(self.folder, passed=True)
        assert replayed + ran == 1
        return ran == 1


@pytest.fixture
def setting(base_kernel: LabKernel, work: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    clone, inside = work / "clone", work / "work"
    (clone / "names").mkdir(parents=True)
    (clone / "data").write_text("data\n")
    (clone / "lab.py").write_text("# code of the lab\n")
    monkeypatch.setattr(
        kept_boots, "LAB_CODE", (*kept_boots.LAB_CODE, str((clone / "lab.py").relative_to(PROJECT)))
    )
    monkeypatch.setenv(kept_boots.FOLDER_VARIABLE, str(work / "kept"))
    script = SCRIPT.format(clone=f"{GUEST_PROJECT}/{clone.relative_to(PROJECT)}")
    request = BootRequest(["sh", "-c", script], inside)
    return Setting(Uml(base_kernel), request, clone, work / "kept", monkeypatch)


def change_request(**changes: object) -> Callable[[Setting], None]:
    def change(setting: Setting) -> None:
        setting.request = replace(setting.request, **changes)  # type: ignore[arg-type]

    return change


def one_byte_of(name: str) -> Callable[[Setting], None]:
    def change(setting: Setting) -> None:
        (setting.clone / name).write_text("Data\n")

    return change


def one_byte_of_a_module(setting: Setting) -> None:
    changed = setting.clone / "k2.ko"
    changed.write_bytes(build_module(setting.target.kernel, K2).read_bytes() + b"\n")

    def built(kernel: LabKernel, modules: Sequence[Module]) -> dict[str, Path]:
        return build_modules(kernel, modules) | {K2.name: changed}

    setting.patch.setattr("steady_lab.targets.uml.build_modules", built)


def other_kernel(setting: Setting) -> None:
    setting.target = replace(setting.target, kernel=replace(setting.target.kernel, key="another"))


def other_root(setting: Setting) -> None:
    other = replace(guest_root(), key="another")
    setting.patch.setattr("steady_lab.targets.uml.guest_root", lambda: other)


def one_byte_of_the_preload(setting: Setting) -> None:
    changed = setting.clone / "preload.so"
    changed.write_bytes(build_preload().read_bytes() + b"\n")
    setting.patch.setattr("steady_lab.targets.uml.build_preload", lambda: changed)


def other_processor(setting: Setting) -> None:
    setting.patch.setenv(kept_boots.PROCESSOR_VARIABLE, "glibc.cpu.x86_ibt=off")


def other_time_limit(setting: Setting) -> None:
    setting.target = replace(setting.target, virtual_timeout_s=1000)


def work_file(setting: Setting) -> None:
    setting.given = "Given\n"


READ_BY_THE_GUEST = {
    "a file of the clone": one_byte_of("data"),
    "a file that was missing": one_byte_of("missing"),
    "a name in a folder that was listed": one_byte_of("names/new"),
}
KNOWN_BEFORE = {
    "code of the lab": one_byte_of("lab.py"),
    "the kernel": other_kernel,
    "a file of the work folder": work_file,
    "the command": change_request(command=["sh", "-c", "cat given"]),
    "the environment": change_request(environment={"A": "b"}),
    "the random numbers": change_request(random_seed=1),
    "the device": change_request(device=PROJECT / "experiments" / "devices" / "test-plain.toml"),
    "the image of the card": change_request(card_image="given"),
    "a further module": change_request(modules=["null_blk nr_devices=1"]),
    "a parameter of a module": change_request(modules=["null_blk nr_devices=2"]),
    "a module": one_byte_of_a_module,
    "the root": other_root,
    "what is loaded into each guest": one_byte_of_the_preload,
    "what a guest may use of the processor": other_processor,
    "the time limit": other_time_limit,
}


def test_a_boot_runs_again_after_a_change_of_what_the_guest_has_read(setting: Setting) -> None:
    assert setting.ran()
    assert not setting.ran()
    for what, change in READ_BY_THE_GUEST.items():
        change(setting)
        assert setting.ran(), f"{what} has changed, and the boot was replayed"
        assert not setting.ran()


def test_any_change_before_the_start_gives_another_key(setting: Setting) -> None:
    keys = [setting.key()]
    assert setting.key() == keys[0]
    for what, change in KNOWN_BEFORE.items():
        change(setting)
        assert setting.key() not in keys, f"{what} has changed, and the boot would be replayed"
        keys.append(setting.key())


def test_a_replayed_boot_leaves_what_the_guest_left(setting: Setting) -> None:
    assert setting.ran()
    kept_boots.begin(setting.folder)
    first, again = setting.boot(), setting.boot()
    assert kept_boots.used(setting.folder) == (2, 0)
    assert again == first
    assert (setting.request.work / "folder" / "link").read_text() == "written\n"


def test_a_boot_of_a_test_that_failed_is_not_replayed(setting: Setting) -> None:
    for passed in (False, True):
        kept_boots.begin(setting.folder)
        setting.boot()
        assert kept_boots.used(setting.folder) == (0, 1)
        kept_boots.settle(setting.folder, passed)
    assert not setting.ran()
    kept_boots.begin(setting.folder)
    setting.boot()
    kept_boots.settle(setting.folder, passed=False)
    assert setting.ran()


def test_a_boot_with_another_key_runs(setting: Setting) -> None:
    assert setting.ran()
    work_file(setting)
    assert setting.ran()


def test_two_equal_boots_of_a_test_both_run(setting: Setting) -> None:
    kept_boots.begin(setting.folder)
    setting.boot()
    setting.boot()
    assert kept_boots.used(setting.folder) == (0, 2)


def test_a_boot_that_failed_is_not_kept(setting: Setting) -> None:
    setting.request = replace(setting.request, command=["sh", "-c", "echo c >/proc/sysrq-trigger"])
    for _ in range(2):
        kept_boots.begin(setting.folder)
        with pytest.raises(BootError, match="panic"):
            setting.boot()
        assert kept_boots.used(setting.folder) == (0, 1)
        kept_boots.settle(setting.folder, passed=True)


def test_a_file_that_changes_while_the_guest_runs_is_not_believed(setting: Setting) -> None:
    """The guest has read it before, and its list of inputs names what is there now."""
    data = setting.clone / "data"

    def run() -> BootResult:
        result = setting.target.guest(setting.request).boot(setting.request, print)
        data.write_text("later\n")
        return result

    kept = kept_boots.KeptBoots(setting.folder)
    kept_boots.begin(setting.folder)
    kept.boot({}, setting.request, run)
    kept_boots.settle(setting.folder, passed=True)
    assert not list(setting.folder.glob("*-*"))


def test_a_full_disk_fails_no_test(setting: Setting) -> None:
    """Nothing is kept then, and nothing half done is left."""
    usage = shutil.disk_usage(setting.folder.parent)
    setting.patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    assert setting.ran()
    setting.patch.undo()
    assert not list(setting.folder.glob("*-*"))


def test_a_boot_that_cannot_be_written_is_not_kept(setting: Setting) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    setting.patch.setattr(kept_boots, "_copy", full)
    assert setting.ran()
    assert not list(setting.folder.glob("*-*"))


def test_the_oldest_boots_go_beyond_the_limit(work: Path) -> None:
    for age_s, name in enumerate(
        ("new/1-a", "old/2-b", "oldest/3-c", f"oldest/{kept_boots.CANDIDATE}4-d")
    ):
        folder = work / name
        folder.mkdir(parents=True)
        (folder / kept_boots.NOTE).write_text(json.dumps({"bytes": 100}))
        os.utime(folder, (1000 - age_s, 1000 - age_s))
    kept_boots.limit(work, bytes_max=250)
    assert sorted(str(one.relative_to(work)) for one in work.glob("*/*-*")) == [
        "new/1-a",
        "old/2-b",
        f"oldest/{kept_boots.CANDIDATE}4-d",
    ]
