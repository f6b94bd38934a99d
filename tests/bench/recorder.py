# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes of `steady record` side by side on this machine's clock, and the pool's throughput.

One ext4 on a loop device holds everything. Next to each recipe run a sequential reader, a buffered
writer in the same small memory cgroup (so that the recorder's pages are reclaimed, too), and a
storm of syncfs(). Then, with no other load, fio writes directly and the pool records, in turn, on
the device throttled to several speeds and not at all (`--throughput`: only this).

Both write the same bytes in units of the same size, past the page cache, into blocks that were
written before. fio writes one constant buffer, one unit at a time or as many as the pool has in
flight at most, and syncs once, at the end. The pool takes payload in records of 64 KiB that another
thread copies into its ring. Its time ends when all is durable. Framing, checksums, changes of
segment and the two syncs a second of its loss window count against it.

Then records of 100 bytes come through a pipe, as fast as a program can write what it has ready,
with and without `--measure-calls` (`--input`: only this).

Then data of several kinds comes through a pipe, with each `--compression`, and the built-in source
appends at a fixed rate (`--compression`: only this). Each kind repeats after more than a block, so
no block compresses better because of that.

Called by scripts/bench. Nothing here is asserted: a busy machine must not fail the tests. Figures
are compared within one run only.
"""

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steady_lab.paths import PROJECT

STEADY = PROJECT / "build" / "bin" / "steady"
STEADY_RECIPE = PROJECT / "build" / "bin" / "steady-recipe"
RECIPES = ("append-fdatasync", "prealloc-syncrange", "prealloc-syncrange-BGall", "pool")
CGROUP = Path("/sys/fs/cgroup/memory/steadyio-bench")
CGROUP_BYTES = 192 << 20
BLKIO = Path("/sys/fs/cgroup/blkio/steadyio-bench")
# A good eMMC, a good UFS or SATA disk, and between; 0 is the device as it is.
THROTTLES_MB_S = (100, 200, 400, 0)
# A run on a throttled device takes this long.
THROTTLED_S = 5
# The pool has four buffers, one of which is being filled.
IN_FLIGHT = 3
PRIORITY = "50"
UNIT = "1M"
THROUGHPUT_HEAD = (
    f"throttled to MB/s|fio MiB/s|fio, {IN_FLIGHT} in flight|pool MiB/s|its rounds|"
    "pool over fio %|over the deep one %|CPU us/MiB"
)
INPUT_HEAD = "framing|topics|calls measured|records/s|its rounds|CPU ns/record|of it reading"
INPUT_BYTES = 100
# What a producer has ready.
BATCH = 10_000
COMPRESSIONS = ("none", "lz4", "zstd")
COMPRESSION_HEAD = "data|bytes|compression|MiB/s|payload over written|writer's CPU us/MiB"
APPEND_HEAD = "compression|p50|p99|p99.9|max us|blocked|written MiB"
# More than a block.
KIND_BYTES = 4 << 20
HEAD = "recipe|call|p50|p99|p99.9|max us|cause of max|calls|blocked|preempted|late|CPU us/MiB"


class Sizes:
    """How much is written, by option --small."""

    def __init__(self, small: bool) -> None:
        self.disk_mib = 300 if small else 3000
        self.total = "2M" if small else "100M"
        self.read_mib = 16 if small else 512
        self.throughput_mib = 24 if small else 1024
        self.throttles_mb_s = (0,) if small else THROTTLES_MB_S
        self.rounds = 1 if small else 3
        self.segment = "8M" if small else "64M"
        self.input_records = BATCH if small else 400 * BATCH
        self.repeats = 1 if small else 24
        self.appended = "1M" if small else "20M"
        self.large_segment = "8M" if small else "128M"


def run(*command: str | Path) -> str:
    """Run a program and return its output."""
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
def cgroup(folder: Path, file: str, limit: str, otherwise: str) -> Iterator[str | None]:
    """Shell text that puts a program into a cgroup with a limit; None where that is impossible."""
    try:
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(limit)
    except OSError as error:
        print(f"{otherwise}: {error}")
        yield None
        return
    try:
        yield f"echo $$ >{folder}/cgroup.procs; "
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def memory_pressure() -> Iterator[str]:
    """Shell text that puts a program into a small memory cgroup; empty where there is none."""
    file = "memory.limit_in_bytes"
    with cgroup(CGROUP, file, str(CGROUP_BYTES), "no memory pressure") as join:
        yield join or ""


@contextlib.contextmanager
def throttled(mount: Path, mb_s: int) -> Iterator[str | None]:
    """Shell text that limits a program's writes to this speed; None where it cannot."""
    if mb_s == 0:
        yield ""
        return
    device = mount.stat().st_dev
    limit = f"{os.major(device)}:{os.minor(device)} {mb_s * 1_000_000}"
    file, otherwise = "blkio.throttle.write_bps_device", f"skipped: {mb_s} MB/s: cannot throttle"
    with cgroup(BLKIO, file, limit, otherwise) as join:
        yield join


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


def record(join: str, *arguments: str | Path, recipe: str = "pool") -> dict[str, Any]:
    """One recording, in the cgroup."""
    program = (STEADY, "record") if recipe == "pool" else (STEADY_RECIPE, recipe)
    command = " ".join(str(argument) for argument in (*program, "--json", *arguments))
    done = subprocess.run(
        ["sh", "-c", f"{join}exec {command}"],
        capture_output=True,
        text=True,
        check=False,
    )
    # 3: records were lost, as the result shows.
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
            files = ["--segment-size", sizes.total]
            if recipe == "pool":
                segments = "2" if sizes.disk_mib < 1000 else "4"
                files = ["--segment-size", sizes.segment, "--segments", segments]
            files += ["--dir", str(where), "--total", sizes.total, "--priority", PRIORITY]
            result = record(join, *files, recipe=recipe)
            rows.append(row(result))
            p999[recipe] = result["caller"]["calls"]["latency_ns"]["p999"]
            lost = result["ledger"]["total"]["lost_ring_full"]["records"]
            if lost:
                print(f"{recipe}: {lost} records lost")
    print_table(rows)
    ratio = p999["append-fdatasync"] / max(p999["pool"], 1)
    print(f"p99.9 of append-fdatasync write() over p99.9 of pool append(): {ratio:.0f}")


def fio_mib_s(join: str, mount: Path, mib: int, in_flight: int) -> float:
    """Sequential direct writes over blocks that were written before, then one fsync."""
    engine = "psync" if in_flight == 1 else f"io_uring --iodepth={in_flight}"
    command = (
        f"{join}exec fio --name=write --filename={mount / 'fio'} --size={mib}M --rw=write "
        f"--bs={UNIT} --direct=1 --ioengine={engine} --overwrite=1 --end_fsync=1 "
        "--scramble_buffers=0 --output-format=json --eta=never"
    )
    text = run("sh", "-c", command)
    job = json.loads(text[text.index("{") :])["jobs"][0]
    return float(job["write"]["bw_bytes"]) / (1 << 20)


def throughput(join: str, mount: Path, sizes: Sizes, mb_s: int) -> list[str]:
    """fio and the pool in turn; a line of the table, of medians."""
    mib = mb_s * THROTTLED_S if mb_s else sizes.throughput_mib
    one, deep, pool, cpu = [], [], [], []
    for _ in range(sizes.rounds):
        one.append(fio_mib_s(join, mount, mib, 1))
        deep.append(fio_mib_s(join, mount, mib, IN_FLIGHT))
        result = record(
            join,
            *("--dir", mount / "throughput", "--period", "0", "--size", "64K", "--unit", UNIT),
            *("--total", f"{mib}M", "--segment-size", sizes.large_segment, "--segments", "3"),
        )
        pool.append(float(result["payload_mib_s"]))
        cpu.append(float(result["cpu_ns_per_mib"]) / 1000)
    one_mib_s, deep_mib_s, pool_mib_s = map(statistics.median, (one, deep, pool))
    return [
        str(mb_s or "none"),
        *(f"{speed:.1f}" for speed in (one_mib_s, deep_mib_s, pool_mib_s)),
        f"{min(pool):.0f} to {max(pool):.0f}",
        *(f"{100 * pool_mib_s / speed:.1f}" for speed in (one_mib_s, deep_mib_s)),
        f"{statistics.median(cpu):.0f}",
    ]


def throughputs(mount: Path, sizes: Sizes) -> None:
    """The table of throughputs."""
    rows = [THROUGHPUT_HEAD.split("|")]
    for mb_s in sizes.throttles_mb_s:
        with throttled(mount, mb_s) as join:
            if join is not None:
                rows.append(throughput(join, mount, sizes, mb_s))
    print(f"sequential throughput in units of {UNIT}, medians of {sizes.rounds} rounds:")
    print_table(rows)


def frame(kind: int, body: bytes) -> bytes:
    """docs/spec/record-framing-1.md"""
    return struct.pack("<IB", 1 + len(body), kind) + body


def stream(framing: str, topics: int) -> tuple[bytes, bytes]:
    """What a stream begins with, and a batch of records for its topics in turn."""
    data = b"x" * INPUT_BYTES
    if framing == "lines":
        return b"", (data[1:] + b"\n") * BATCH
    beginning = b"\x89STEADY\x01"
    for number in range(topics):
        name = f"/topic{number}".encode()
        fields = struct.pack("<HIQH", number, INPUT_BYTES, 0, len(name))
        beginning += frame(1, fields + name + bytes(6))
    records = (struct.pack("<HQ", number % topics, 1 + number) + data for number in range(BATCH))
    return beginning + frame(2, b""), b"".join(frame(3, record) for record in records)


def piped(pool: Path, sizes: Sizes, beginning: bytes, batches: list[bytes], *options: str) -> Any:
    """The result of one recording from a pipe."""
    command: list[str | Path] = [STEADY, "record", "--json", "--dir", pool, "--block", "--quiet"]
    command += ["--input", "-", *options, "--segment-size", sizes.segment, "--segments", "4"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdin is not None and recorder.stdout is not None
        with recorder.stdin as pipe:
            pipe.write(beginning)
            for batch in batches:
                pipe.write(batch)
        return json.loads(recorder.stdout.read())


def records_per_s(mount: Path, sizes: Sizes, framing: str, topics: int, options: list[str]) -> Any:
    """One recording from a pipe: records/s, CPU per record, and of the thread that reads."""
    beginning, batch = stream(framing, topics)
    options = ["--framing", framing, "--size", str(INPUT_BYTES), *options]
    batches = [batch] * (sizes.input_records // BATCH)
    result = piped(mount / f"input{topics}", sizes, beginning, batches, *options)
    durable = result["ledger"]["total"]["durable"]
    assert durable["records"] == sizes.input_records, durable
    reader = result["caller"]["kernel"]
    reading_ns = (reader["user_ns"] + reader["system_ns"]) / durable["records"]
    cpu_ns = result["cpu_ns_per_mib"] * INPUT_BYTES / (1 << 20)
    return durable["records"] / result["duration_ns"] * 1e9, cpu_ns, reading_ns


def inputs(mount: Path, sizes: Sizes) -> None:
    """The table of records per second through a pipe."""
    rows = [INPUT_HEAD.split("|")]
    for framing, topics in (("lines", 1), ("frames", 1), ("frames", 1000)):
        for options in ([], ["--measure-calls"]):
            rounds = [
                records_per_s(mount, sizes, framing, topics, options) for _ in range(sizes.rounds)
            ]
            speeds, cpu_ns, reading_ns = zip(*rounds, strict=True)
            rows.append(
                [
                    *(framing, str(topics), "yes" if options else "no"),
                    f"{statistics.median(speeds):.0f}",
                    f"{min(speeds):.0f} to {max(speeds):.0f}",
                    f"{statistics.median(cpu_ns):.0f}",
                    f"{statistics.median(reading_ns):.0f}",
                ]
            )
    print(
        f"{sizes.input_records} records of {INPUT_BYTES} bytes through a pipe, "
        f"medians of {sizes.rounds} rounds:"
    )
    print_table(rows)


def kinds() -> dict[str, list[bytes]]:
    """Records of sensors, the same in each run."""
    noise = random.Random(47)

    def pose(number: int) -> bytes:
        x, y = math.sin(number / 900), math.cos(number / 700)
        heading = noise.gauss(number / 5000, 0.001)
        text = {"stamp": number / 100, "x": round(x, 4), "y": round(y, 4), "yaw": round(heading, 5)}
        return json.dumps(text).encode()

    def inertial(number: int) -> bytes:
        # A converter with 16 bits, as doubles.
        values = [round(noise.gauss(math.sin(number / 300), 0.01) * 2048) / 2048 for _ in range(6)]
        return struct.pack("<QI6d", number * 5_000_000, number, *values)

    def scan(number: int) -> bytes:
        ranges = (4 + 3 * math.sin((number + at) / 90) for at in range(720))
        return struct.pack("<720f", *(round(noise.gauss(one, 0.005), 3) for one in ranges))

    def image(number: int) -> bytes:
        row = [number + at // 3 + noise.randrange(4) for at in range(256)]
        return bytes((one + line + noise.randrange(2)) & 255 for line in range(256) for one in row)

    makers: dict[str, Callable[[int], bytes]] = {
        "poses as JSON": pose,
        "inertial": inertial,
        "laser scans": scan,
        "images": image,
        "random": lambda _: noise.randbytes(64 << 10),
    }
    found = {}
    for name, make in makers.items():
        records = [make(0)]
        records += [make(number) for number in range(1, KIND_BYTES // len(records[0]))]
        found[name] = records
    return found


def compressed(mount: Path, sizes: Sizes, records: list[bytes], compression: str) -> list[str]:
    """One recording of these records, again and again; the end of a line of the table."""
    name = b"/records"
    fields = struct.pack("<HIQH", 0, max(map(len, records)), 0, len(name))
    beginning = b"\x89STEADY\x01" + frame(1, fields + name + bytes(6)) + frame(2, b"")
    heads = (struct.pack("<HQ", 0, 1 + number) for number in range(len(records)))
    parts = zip(heads, records, strict=True)
    batch = b"".join(frame(3, head + data) for head, data in parts)
    options = ("--framing", "frames", "--compression", compression)
    result = piped(mount / compression, sizes, beginning, [batch] * sizes.repeats, *options)
    durable = result["ledger"]["total"]["durable"]
    assert durable["records"] == len(records) * sizes.repeats, durable
    writer = result["pool"]["kernel"]
    cpu_us = (writer["user_ns"] + writer["system_ns"]) / 1000
    ratio = durable["bytes"] / result["pool"]["device_bytes"]
    mib = durable["bytes"] / (1 << 20)
    return [f"{result['payload_mib_s']:.0f}", f"{ratio:.2f}", f"{cpu_us / mib:.0f}"]


def compressions(mount: Path, sizes: Sizes) -> None:
    """The tables of compression: what it gains and costs, and how long append() takes."""
    rows = [COMPRESSION_HEAD.split("|")]
    for kind, records in kinds().items():
        length = f"{sum(map(len, records)) / len(records):.0f}"
        for compression in COMPRESSIONS:
            found = compressed(mount, sizes, records, compression)
            rows.append([kind, length, compression, *found])
    print("through a pipe, as fast as the recorder takes it:")
    print_table(rows)
    rows = [APPEND_HEAD.split("|")]
    for compression in COMPRESSIONS:
        result = record(
            "",
            *("--dir", mount / f"append-{compression}", "--total", sizes.appended),
            *("--compression", compression, "--priority", PRIORITY),
            *("--segment-size", sizes.segment, "--segments", "2"),
        )
        latency = result["caller"]["calls"]["latency_ns"]
        times = [f"{latency[key] / 1000:.1f}" for key in ("p50", "p99", "p999", "max")]
        written = f"{result['pool']['device_bytes'] / (1 << 20):.1f}"
        rows.append([compression, *times, str(result["caller"]["blocked_calls"]), written])
    print(f"append() of 16 KiB every 5 ms, {sizes.appended}, caller under SCHED_FIFO:")
    print_table(rows)


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few seconds, to see that it works")
    parser.add_argument("--throughput", action="store_true", help="only the pool against fio")
    parser.add_argument("--input", action="store_true", help="only records through a pipe")
    parser.add_argument("--compression", action="store_true", help="only what compression does")
    arguments = parser.parse_args()
    only = [name for name in ("throughput", "input", "compression") if vars(arguments)[name]]
    sizes = Sizes(arguments.small)
    if os.geteuid() != 0:
        print("skipped: a loop device with a file system needs root")
        return
    if not only:
        with mounted(sizes) as mount:
            print(f"16 KiB every 5 ms, {sizes.total}, caller under SCHED_FIFO, everything beside:")
            side_by_side(mount, sizes)
    if not only or "throughput" in only:
        with mounted(sizes) as mount:
            throughputs(mount, sizes)
    if not only or "input" in only:
        with mounted(sizes) as mount:
            inputs(mount, sizes)
    if not only or "compression" in only:
        with mounted(sizes) as mount:
            compressions(mount, sizes)


if __name__ == "__main__":
    main()
