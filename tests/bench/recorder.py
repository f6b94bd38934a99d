# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes of `steady record` side by side on this machine's clock, and the pool's throughput.

One ext4 on a loop device holds everything. Beside each recipe run a sequential reader, a buffered
writer in the same small memory cgroup (so that the recorder's pages are reclaimed, too), and a
storm of syncfs(). Then, with nothing beside, fio writes directly and the pool records, in turn.

Called by scripts/bench. Nothing here is asserted: a busy machine must not fail the tests. What is
stated is compared within one run only.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steady_lab.paths import PROJECT

STEADY = PROJECT / "build" / "bin" / "steady"
RECIPES = ("append-fdatasync", "prealloc-syncrange", "prealloc-syncrange-BGall", "pool")
CGROUP = Path("/sys/fs/cgroup/memory/steadyio-bench")
CGROUP_BYTES = 192 << 20
BLKIO = Path("/sys/fs/cgroup/blkio/steadyio-bench")
# As fast as a good eMMC writes.
THROTTLE_BYTES_S = 100_000_000
PRIORITY = "50"
UNIT = "1M"
HEAD = "recipe|call|p50|p99|p99.9|max us|cause of max|calls|blocked|preempted|late|CPU us/MiB"


class Sizes:
    """How much is written, by option --small."""

    def __init__(self, small: bool) -> None:
        self.disk_mib = 300 if small else 3000
        self.total = "2M" if small else "100M"
        self.read_mib = 16 if small else 512
        self.throughput_mib = 24 if small else 512
        self.rounds = 1 if small else 5
        self.segment = "8M" if small else "64M"
        self.large_segment = "8M" if small else "128M"


def run(*command: str | Path) -> str:
    """Runs a program and returns what it printed."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def unmount(mount: Path) -> None:
    """Programs that were killed let go of their files only when their last write has ended."""
    for _ in range(100):
        if subprocess.run(["umount", mount], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.2)
    run("umount", mount)


@contextlib.contextmanager
def mounted(sizes: Sizes) -> Iterator[Path]:
    """A new ext4 on a loop device; all of it goes at the end."""
    build = PROJECT / "build" / "bench"
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as name, contextlib.ExitStack() as stack:
        backing = Path(name) / "disk"
        with backing.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, sizes.disk_mib << 20)
        node = run("losetup", "--find", "--show", "--direct-io=on", backing)
        stack.callback(run, "losetup", "--detach", node)
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)
        mount = Path(name) / "mnt"
        mount.mkdir()
        run("mount", "-o", "noatime,lazytime", node, mount)
        stack.callback(unmount, mount)
        yield mount


@contextlib.contextmanager
def memory_pressure() -> Iterator[str]:
    """Shell text that puts a program into a small memory cgroup; empty where there is none."""
    try:
        CGROUP.mkdir(exist_ok=True)
        (CGROUP / "memory.limit_in_bytes").write_text(str(CGROUP_BYTES))
    except OSError as error:
        print(f"no memory pressure: {error}")
        yield ""
        return
    try:
        yield f"echo $$ >{CGROUP}/cgroup.procs; "
    finally:
        with contextlib.suppress(OSError):
            CGROUP.rmdir()


@contextlib.contextmanager
def throttled(mount: Path) -> Iterator[str]:
    """Shell text that limits a program's writes to the speed of an eMMC; empty where it cannot."""
    device = mount.stat().st_dev
    limit = f"{os.major(device)}:{os.minor(device)} {THROTTLE_BYTES_S}"
    try:
        BLKIO.mkdir(exist_ok=True)
        (BLKIO / "blkio.throttle.write_bps_device").write_text(limit)
    except OSError as error:
        print(f"not throttled: {error}")
        yield ""
        return
    try:
        yield f"echo $$ >{BLKIO}/cgroup.procs; "
    finally:
        with contextlib.suppress(OSError):
            BLKIO.rmdir()


@contextlib.contextmanager
def beside(mount: Path, join: str, sizes: Sizes) -> Iterator[None]:
    """Reader, writer and sync storm, until the end of the block."""
    read, written = mount / "read", mount / "written"
    mib = sizes.read_mib
    loads = (
        f"while :; do dd if={read} of=/dev/null bs=2M iflag=direct status=none; done",
        f"while :; do dd if=/dev/zero of={written} bs=1M count={mib} status=none; done",
        f"while :; do sync -f {mount}; sleep 0.1; done",
    )
    run("dd", "if=/dev/zero", f"of={read}", "bs=1M", f"count={mib}", "status=none")
    programs = [
        subprocess.Popen(["sh", "-c", join + load], start_new_session=True) for load in loads
    ]
    try:
        yield
    finally:
        for program in programs:
            os.killpg(program.pid, 9)
        for program in programs:
            program.wait()


def record(join: str, *arguments: str | Path) -> dict[str, Any]:
    """One `steady record`, in the cgroup."""
    command = " ".join(str(argument) for argument in (STEADY, "record", "--json", *arguments))
    done = subprocess.run(
        ["sh", "-c", f"{join}exec {command}"],
        capture_output=True,
        text=True,
        check=False,
    )
    # 3: records were lost, which the result says.
    if done.returncode not in (0, 3):
        sys.exit(f"{command}: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def row(result: dict[str, Any]) -> list[str]:
    """A line of the table."""
    caller = result["caller"]
    latency = caller["calls"]["latency_ns"]
    times = [f"{latency[key] / 1000:.1f}" for key in ("p50", "p99", "p999", "max")]
    counts = [caller["calls"]["count"], caller["blocked_calls"], caller["preempted_calls"]]
    cpu = f"{(result['cpu_ns_per_mib'] or 0) / 1000:.0f}"
    words = [result["recipe"]["name"], caller["call"], *times, caller["worst"][0]["cause"]]
    return [*words, *map(str, counts), str(caller["late_records"]), cpu]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    for cells in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))


def side_by_side(mount: Path, sizes: Sizes) -> None:
    """The table of latencies."""
    rows = [HEAD.split("|")]
    p999: dict[str, int] = {}
    with memory_pressure() as join, beside(mount, join, sizes):
        for recipe in RECIPES:
            where = mount / recipe
            result = record(
                join,
                *("--recipe", recipe, "--dir", where, "--total", sizes.total),
                *("--priority", PRIORITY, "--segments", "2" if sizes.disk_mib < 1000 else "4"),
                *("--segment-size", sizes.segment if recipe == "pool" else sizes.total),
            )
            rows.append(row(result))
            p999[recipe] = result["caller"]["calls"]["latency_ns"]["p999"]
            lost = result["ledger"]["total"]["lost_ring_full"]["records"]
            if lost:
                print(f"{recipe}: {lost} records lost")
    print_table(rows)
    ratio = p999["append-fdatasync"] / max(p999["pool"], 1)
    print(f"p99.9 of append-fdatasync write() over p99.9 of pool append(): {ratio:.0f}")


def fio_mib_s(join: str, mount: Path, mib: int) -> float:
    """Sequential direct writes over blocks that were written before, then one fsync."""
    command = (
        f"{join}exec fio --name=write --filename={mount / 'fio'} --size={mib}M --rw=write "
        f"--bs={UNIT} --direct=1 --ioengine=psync --overwrite=1 --end_fsync=1 "
        "--output-format=json --eta=never"
    )
    text = run("sh", "-c", command)
    job = json.loads(text[text.index("{") :])["jobs"][0]
    return float(job["write"]["bw_bytes"]) / (1 << 20)


def throughput(join: str, mount: Path, sizes: Sizes) -> None:
    """fio and the pool in turn; the medians are compared."""
    mib = sizes.throughput_mib
    speeds: dict[str, list[float]] = {"fio": [], "pool": []}
    cpu: list[float] = []
    for _ in range(sizes.rounds):
        speeds["fio"].append(fio_mib_s(join, mount, mib))
        result = record(
            join,
            *("--dir", mount / "throughput", "--period", "0", "--size", "64K", "--unit", UNIT),
            *("--total", f"{mib}M", "--segment-size", sizes.large_segment, "--segments", "3"),
        )
        speeds["pool"].append(result["payload_mib_s"])
        cpu.append(result["cpu_ns_per_mib"] / 1000)
    for name, all_of in speeds.items():
        values = sorted(map(round, all_of))
        print(f"{name:5} MiB/s: median {statistics.median(all_of):.1f}, all {values}")
    fio, pool = (statistics.median(speeds[name]) for name in ("fio", "pool"))
    print(
        f"pool over fio: {100 * pool / fio:.1f} %; {statistics.median(cpu):.0f} us of CPU per MiB"
    )


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few seconds, to see that it works")
    sizes = Sizes(parser.parse_args().small)
    if os.geteuid() != 0:
        print("skipped: a loop device with a file system needs root")
        return
    with mounted(sizes) as mount:
        print(f"16 KiB every 5 ms, {sizes.total}, caller under SCHED_FIFO, everything beside:")
        side_by_side(mount, sizes)
    with mounted(sizes) as mount:
        mb_s = THROTTLE_BYTES_S // 1_000_000
        print(f"sequential throughput in units of {UNIT}, on a device throttled to {mb_s} MB/s:")
        with throttled(mount) as join:
            throughput(join, mount, sizes)
        print("the same, not throttled:")
        throughput("", mount, sizes)


if __name__ == "__main__":
    main()
