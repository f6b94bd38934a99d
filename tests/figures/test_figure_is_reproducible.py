# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same figure gives the same bytes, on a busy host and after an interruption.

Real boots of the tiny figure. The first run is interrupted once its first boot is finished and
then resumed; the second is made while one busy process per core competes with the guests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from busy import busy_cores
from steady_lab.figures.run import RunOrder
from steady_lab.kernels.build import LabKernel
from steady_lab.paths import BUILD

TINY = Path(__file__).parent / "tiny.toml"
STEADY_LAB = [sys.executable, "-m", "steady_lab.cli"]
VARIANTS = ("k2", "k2-split4")
RUN_TIMEOUT_S = 300


def run_command(build: Path, *options: str, figure: Path = TINY) -> list[str]:
    """Return the command that runs the tiny figure below `build`."""
    return [*STEADY_LAB, "run", str(figure), "--build", str(build), *options]


def run(build: Path, *options: str, figure: Path = TINY) -> subprocess.CompletedProcess[str]:
    """Run the tiny figure to its end."""
    return subprocess.run(
        run_command(build, *options, figure=figure),
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )


def finished_boots(build: Path) -> list[str]:
    """Return the variants whose boot is finished and kept."""
    work = build / "work" / "tiny"
    return [variant for variant in VARIANTS if '"key"' in (_text(work / variant / "boot.json"))]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def guests_below(build: Path) -> list[int]:
    """Return the kernels and sandboxes whose console is a file in the build folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # One that steady-lab has just forked is none yet: it would wait for it.
            is_guest = b"time-travel=" in (process / "cmdline").read_bytes()
            if is_guest and (process / "fd" / "0").readlink().is_relative_to(build):
                found.append(int(process.name))
    return found


def stop_second_guest(build: Path) -> bool:
    """Stop the second boot, so that it does not end by itself; False if it does not run.

    Not before its kernel runs: a sandbox that is stopped while it is made outlives its parent.
    """
    guests = guests_below(build)
    if not finished_boots(build) or not any(is_kernel(guest) for guest in guests):
        return False
    for guest in guests:
        with suppress(ProcessLookupError):
            os.kill(guest, signal.SIGSTOP)
    return len(finished_boots(build)) == 1 and bool(guests_below(build))


def is_kernel(process: int) -> bool:
    """Tell whether a process below a build folder is a kernel, not its sandbox."""
    with suppress(OSError):
        program = Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
        return program.endswith(b"/linux")
    return False


@pytest.fixture(scope="module")
def interrupted(
    base_kernel: LabKernel, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int, str]:
    """Interrupt a run after its first boot; return its folder, exit status and errors."""
    build = tmp_path_factory.mktemp("interrupted", numbered=True)
    process = subprocess.Popen(
        run_command(build, "--jobs", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    while not stop_second_guest(build):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "no boot finished in time"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=RUN_TIMEOUT_S)
    return build, process.returncode, errors


def test_interruption_ends_the_guests_and_keeps_what_is_finished(
    interrupted: tuple[Path, int, str],
) -> None:
    build, status, errors = interrupted
    assert status == 130, errors
    assert "Traceback" not in errors
    # The processes were killed; on a busy machine they need a moment to exit.
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    while guests_below(build):
        assert time.monotonic() < deadline_s, "guests outlive the run"
        time.sleep(0.05)
    assert len(finished_boots(build)) == 1
    (kept,) = finished_boots(build)
    record = build / "work" / "tiny" / kept / "record.json"
    written_ns = record.stat().st_mtime_ns

    resumed = run(build)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "1 of 2 boots are finished and kept" in resumed.stderr
    assert record.stat().st_mtime_ns == written_ns
    assert finished_boots(build) == list(VARIANTS)

    again = run(build)
    assert "2 of 2 boots are finished and kept" in again.stderr
    assert record.stat().st_mtime_ns == written_ns


def test_two_runs_give_the_same_bytes(interrupted: tuple[Path, int, str], tmp_path: Path) -> None:
    build, _, _ = interrupted
    first = run(build)
    assert first.returncode == 0, first.stdout + first.stderr
    with busy_cores():
        second = run(tmp_path)
    assert second.returncode == 0, second.stdout + second.stderr
    for name in ("tiny.json", "tiny.csv"):
        one, two = build / "results" / name, tmp_path / "results" / name
        assert one.read_bytes() == two.read_bytes(), f"diff {one} {two}"


def test_damaged_record_is_run_again(interrupted: tuple[Path, int, str]) -> None:
    build, _, _ = interrupted
    assert run(build).returncode == 0
    record = build / "work" / "tiny" / "k2" / "record.json"
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b"1", b"2", 1))
    repaired = run(build)
    assert "1 of 2 boots are finished and kept" in repaired.stderr
    assert record.read_bytes() == whole


def test_only_boots_one_variant_and_concludes_nothing(
    base_kernel: LabKernel, tmp_path: Path
) -> None:
    partial = run(tmp_path, "--only", "k2")
    assert partial.returncode == 0, partial.stderr
    assert "still to boot: k2-split4" in partial.stdout
    assert finished_boots(tmp_path) == ["k2"]
    assert not (tmp_path / "results").exists()


def test_failed_boot_says_why_and_how_to_replay(base_kernel: LabKernel, tmp_path: Path) -> None:
    workload = TINY.with_name("tiny-workload.toml").read_text(encoding="utf-8")
    broken = workload.replace(
        '{ scheduler = "k2", "iosched/rt_block_us" = 0 }', '{ scheduler = "no-such" }'
    )
    (tmp_path / "tiny-workload.toml").write_text(broken, encoding="utf-8")
    figure = tmp_path / "tiny.toml"
    figure.write_text(TINY.read_text(encoding="utf-8"), encoding="utf-8")
    failed = run(tmp_path / "build", "--jobs", "1", figure=figure)
    assert failed.returncode == 1
    assert "tiny/k2 failed" in failed.stderr
    assert "scheduler = no-such" in failed.stderr
    assert "io scheduler k2 registered" in failed.stderr, "the kernel log's tail is shown"
    assert f"replay: build/bin/steady-lab run {figure} --only k2 --fresh --jobs 1" in failed.stderr
    assert finished_boots(tmp_path / "build") == [], "no boot is started after a failure"


def test_unknown_variant_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "--only", "k3")
    assert refused.returncode == 1
    assert "--only k3: must be one of k2, k2-split4" in refused.stderr


def test_results_do_not_depend_on_where_the_project_is(interrupted: tuple[Path, int, str]) -> None:
    build, _, _ = interrupted
    assert run(build).returncode == 0
    text = (build / "results" / "tiny.json").read_text(encoding="utf-8")
    for secret in (str(build), str(BUILD.parent), os.uname().nodename):
        assert secret not in text


def test_another_release_keeps_its_results_apart(tmp_path: Path) -> None:
    assert RunOrder(["tiny"], tmp_path).folder == tmp_path
    assert RunOrder(["tiny"], tmp_path, release="6.12").folder == tmp_path / "6.12"
