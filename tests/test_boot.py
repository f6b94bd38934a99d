# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's own guarantees: what a boot passes on, what it forbids, and that it finds every bug."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from releases import RELEASES, WHOLE_RELEASES
from steady_lab.cli import main
from steady_lab.kernels.build import build_kernel
from steady_lab.kernels.modules import Module, build_module
from steady_lab.kernels.source import find_source
from steady_lab.paths import GUEST_WORK, PROJECT
from steady_lab.root.compiler import compile_inside
from steady_lab.targets.kernel_log import find_exit_status, find_trouble
from steady_lab.targets.target import BootError, BootRequest, BootResult
from steady_lab.targets.uml import Uml, uml
from verdicts import WITHOUT_STEADY

pytestmark = pytest.mark.reads(*WITHOUT_STEADY)

CANARY = Module("canary", PROJECT / "tests" / "canary")


def shell(work: Path, script: str, *, modules: Sequence[str] = ()) -> BootResult:
    return uml().boot(BootRequest(["sh", "-c", script], work, modules=modules))


def test_exit_status_and_output_are_passed_on(work: Path) -> None:
    result = shell(work, "echo out; echo err >&2; exit 7")
    assert (result.exit_status, result.output) == (7, "out\nerr\n")


def test_exit_status_is_that_of_the_command_line(work: Path) -> None:
    assert main(["boot", "--work", str(work), "--", "sh", "-c", "exit 9"]) == 9


def test_missing_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["boot", "--flavour", "debug"])
    assert "CMD" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [["--timeout", "0"], ["--timeout", "inf"], ["--virtual-timeout", "-5"]]
)
def test_impossible_time_limit_is_wrong_usage(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["boot", *options, "--", "true"])
    assert options[1] in capsys.readouterr().err


def test_output_is_streamed_while_the_guest_runs(work: Path) -> None:
    pieces: list[str] = []

    def take(piece: str) -> None:
        pieces.append(piece)
        (work / "seen").touch()

    # The script goes on when its first line was seen.
    command = ["sh", "-c", "echo first; while [ ! -e seen ]; do :; done; echo 2"]
    uml().boot(BootRequest(command, work, on_output=take))
    assert len(pieces) > 1
    assert "".join(pieces) == "first\n2\n"


@pytest.mark.boots_again("depends on the registers of this processor")
def test_processes_keep_their_registers(work: Path) -> None:
    """Upper halves too: lab/host/xstate.c passes them on between kernel and host."""
    if " avx " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no 256-bit registers")
    work.mkdir(parents=True, exist_ok=True)
    program = work / "registers"
    source = PROJECT / "tests" / "registers.c"
    compile_inside([source], program, ["-O2", "-Wall", "-Werror", "-pthread"])
    for release in RELEASES:
        result = uml(release).boot(BootRequest([f"{GUEST_WORK}/registers"], work))
        assert (result.exit_status, result.output) == (0, "")


@pytest.mark.parametrize("release", RELEASES)
def test_random_numbers_are_those_of_the_seed(release: str, work: Path) -> None:
    """And of nothing else: not of the work folder's name, nor of other programs."""
    script = "cat /proc/sys/kernel/random/uuid; sleep 3; head -c 4096 /dev/urandom | sha256sum"
    outputs = []
    for folder, seed in (("a", 0), ("any, other", 0), ("a", 1)):
        command = ["sh", "-c", script]
        request = BootRequest(command, work / folder, random_seed=seed)
        outputs.append(uml(release).boot(request).output)
    first, again, other = outputs
    assert len(first.splitlines()) == 2
    assert first == again
    assert not set(first.splitlines()) & set(other.splitlines())


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_systems_requests_are_the_same_each_time(release: str, work: Path) -> None:
    """Each block event of a new ext4 under load, and its time; whatever the work folder's name."""
    script = """
        set -e
        mkfs.ext4 -q -E nodiscard $STEADY_DEVICE
        mkdir /run/card && mount $STEADY_DEVICE /run/card
        echo 1 >/sys/kernel/tracing/events/block/enable
        for i in $(seq 30); do
            dd if=/dev/urandom of=/run/card/$i bs=4k count=$i conv=fsync status=none
            sleep 0.3
        done
        cat /sys/kernel/tracing/trace >trace"""
    traces = []
    for name in ("a", "any, other"):
        device = PROJECT / "experiments" / "devices" / "test-plain.toml"
        folder = work / name
        result = uml(release).boot(BootRequest(["sh", "-c", script], folder, device=device))
        assert result.exit_status == 0, result.output
        traces.append((folder / "trace").read_text().splitlines())
    assert len(traces[0]) > 1000
    assert traces[0] == traces[1]


def test_a_long_sleep_takes_no_wall_time(work: Path) -> None:
    result = shell(work, "sleep 10000; cut -d. -f1 /proc/uptime")
    assert 10000 <= int(result.output) <= 10001
    assert result.wall_s < 1000


def test_guest_writes_only_to_its_work_folder(work: Path) -> None:
    outside = PROJECT / "build" / "tests" / "outside"
    outside.unlink(missing_ok=True)
    script = f"""
        echo kept > inside
        mount -o remount,rw /
        for place in /etc/steadyio-leak /dev/shm/steadyio-leak {outside}; do echo x > $place; done
        mkdir /run/h && mount -t hostfs none /run/h -o / && echo x > /run/h{outside}
        true"""
    assert shell(work, script).exit_status == 0
    assert (work / "inside").read_text() == "kept\n"
    assert not outside.exists()
    assert not Path("/etc/steadyio-leak").exists()
    assert not Path("/dev/shm/steadyio-leak").exists()


@pytest.mark.boots_again("the first guest runs until the host has seen the second one rejected")
def test_one_work_folder_serves_one_guest_at_a_time(work: Path) -> None:
    with ThreadPoolExecutor() as pool:
        first = pool.submit(shell, work, "touch runs; while [ ! -e refused ]; do :; done")
        while not (work / "runs").exists() and not first.done():
            time.sleep(0.05)
        try:
            with pytest.raises(BootError, match="another guest"):
                shell(work, "true")
        finally:
            (work / "refused").touch()
        assert first.result().exit_status == 0


def test_wall_time_limit_ends_the_guest(work: Path) -> None:
    with pytest.raises(BootError, match="wall time limit"):
        uml().boot(BootRequest(["sh", "-c", "while :; do :; done"], work, timeout_s=3))


# Each call succeeds at once and takes no virtual time.
POLL = "import os\nwhile True: os.sched_yield()"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sh", "-c", "while :; do :; done"], "sh in its own code"),
        (["/usr/bin/python3", "-c", POLL], "python3 in sched_yield()"),
    ],
    ids=["computes", "polls"],
)
def test_a_standstill_is_told(command: Sequence[str], said: str, release: str, work: Path) -> None:
    told: list[str] = []
    enough = threading.Event()

    def take(finding: str) -> None:
        told.append(finding)
        enough.set()

    with pytest.raises(BootError, match="cancelled"):
        target = replace(uml(release), on_standstill=take)
        target.boot(BootRequest(command, work, cancelled=enough))
    assert f"stops while its CPU is busy: {said}, " in told[0]


def test_a_standstill_is_told_once_and_at_the_time_limit(work: Path) -> None:
    told: list[str] = []
    command = ["sh", "-c", "while :; do :; done"]
    with pytest.raises(BootError, match="last seen: .* clock stops .* sh in its own code"):
        target = replace(uml(), on_standstill=told.append)
        target.boot(BootRequest(command, work, timeout_s=25))
    assert len(told) == 1


def test_a_guest_that_sleeps_is_no_standstill(work: Path) -> None:
    """It is busy all the time, for longer than a standstill takes to be told: each turn forks."""
    told: list[str] = []
    command = ["sh", "-c", "for _ in $(seq 400); do sleep 1; done"]
    result = replace(uml(), on_standstill=told.append).boot(BootRequest(command, work))
    assert (result.exit_status, told) == (0, [])


def test_virtual_time_limit_ends_the_guest(work: Path) -> None:
    with pytest.raises(BootError, match="still running after 50 virtual seconds"):
        replace(uml(), virtual_timeout_s=50).boot(BootRequest(["sleep", "1000"], work))


def test_missing_module_is_named(work: Path) -> None:
    with pytest.raises(BootError, match="no module no_such_thing"):
        shell(work, "true", modules=["no_such_thing"])


def test_setup_failure_in_the_guest_is_reported(work: Path) -> None:
    result = shell(work, "true", modules=["null_blk no_such_parameter=x queue_mode=77"])
    assert result.exit_status == 125
    assert "insmod" in result.output


@pytest.mark.parametrize(
    ("bug", "sign"),
    [
        ("warn", "WARNING:"),
        ("lock_order", "possible circular locking"),
        ("use_after_free", "KASAN"),
        ("list", "list_del corruption"),
        ("hang", "blocked for more than"),
    ],
)
@pytest.mark.parametrize("release", WHOLE_RELEASES)
def test_a_kernel_bug_fails_the_boot(release: str, bug: str, sign: str, work: Path) -> None:
    kernel = build_kernel(find_source(release=release), "debug")
    canary = build_module(kernel, CANARY)
    request = BootRequest(["sleep", "400"], work, modules=[f"{canary} bug={bug}"])
    with pytest.raises(BootError, match=sign):
        Uml(kernel).boot(request)


@pytest.mark.parametrize("release", WHOLE_RELEASES)
def test_no_bug_no_failure(release: str, work: Path) -> None:
    kernel = build_kernel(find_source(release=release), "debug")
    request = BootRequest(["sleep", "400"], work, modules=[str(build_module(kernel, CANARY))])
    assert Uml(kernel).boot(request).exit_status == 0


def test_panic_fails_the_boot(work: Path) -> None:
    with pytest.raises(BootError, match="panic"):
        shell(work, "echo c > /proc/sysrq-trigger")


def test_a_card_that_outgrows_the_guests_memory_fails_the_boot(work: Path) -> None:
    fill = "dd if=/dev/urandom of=$STEADY_DEVICE bs=1M count=450 oflag=direct"
    card = PROJECT / "experiments" / "devices" / "s4-emmc-8gb.toml"
    with pytest.raises(BootError, match="memory is full: the card has [0-9]+ MiB"):
        uml().boot(BootRequest(["sh", "-c", fill], work, device=card))


def test_find_trouble_ignores_ordinary_lines() -> None:
    ordinary = "[    0.1] mmc0: new HS400 MMC card\n[    0.2] EXT4-fs (mmcblk0): mounted"
    assert find_trouble(ordinary) == []


def test_find_trouble_ignores_the_trace_of_an_injected_fault_only() -> None:
    log = "FAULT_INJECTION: forcing a failure.\nCall Trace:\n dump\nCall Trace:\n"
    assert len(find_trouble(log)) == 1


@pytest.mark.parametrize(("site", "count"), [("force_flush_all+0xc2", 0), ("k2_dispatch+0x1", 2)])
def test_find_trouble_knows_the_one_report_about_uml_itself(site: str, count: int) -> None:
    log = f"""WARNING: suspicious RCU usage
        lib/maple_tree.c:860 suspicious rcu_dereference_check() usage!
        Call Trace:
         [<601cd485>] ? mas_find+0xb3/0xdb
         [<60030087>] ? {site}
        ordinary"""
    assert len(find_trouble(log)) == count


def test_find_exit_status() -> None:
    assert find_exit_status("x\n[ 1.0] steady-lab: exit status 42\n") == 42
    assert find_exit_status("nothing") is None
