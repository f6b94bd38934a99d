# SPDX-License-Identifier: MIT OR Apache-2.0
"""The loads of the e.MMC analysis paper under `steady trace`, on a loop device of this machine.

The loads are those of experiments/traces/s5.toml; fio runs each for itself, on ext4 and on the
device below. With --write, which takes a minute or two and wants an idle machine, the traces become
the records of docs/results/s5.md; `steady-lab results` then writes the page.

Called by scripts/bench. No time is asserted; that every load is in its trace is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from steady_lab.figures.traced_loads import TracedLoads, load_traced_loads
from steady_lab.pages.results import RECORDS
from steady_lab.pages.spans import shares_table, speeds_table
from steady_lab.pages.traced_runs import Key, all_keys, read_runs, write_record, write_runs
from steady_lab.paths import BUILD, PROJECT

sys.path.insert(0, str(PROJECT / "tests" / "trace"))

from loop_disk import STEADY, Disk, loop_disk, run

NAME = "s5"
SMALL_IOS, SMALL_LOADS = 50, 4
SEED = 7
MS_PER_S = 1000
Seen = dict[str, float]
# Of `steady trace`: the trace has a gap, which its account tells.
GAP = 3


def fio(target: Path, loads: TracedLoads, *options: str) -> list[str]:
    """The command for one job on this file or device, in a part that has room for every load."""
    file_kib = max(kib * ios for kib, ios in loads.ios.items())
    command = ["fio", "--name=load", f"--filename={target}", f"--size={file_kib}k"]
    return [*command, f"--randseed={SEED}", *options]


def traced(node: str, command: list[str], folder: Path) -> tuple[str, bool]:
    """What `steady trace` printed of this command, and whether the trace is whole.

    A Ctrl-C reaches both; then what `steady` has set in the kernel must be back before the device
    goes, so it is waited for.
    """
    output = folder / "trace.json"
    whole = ["trace", "--json", "--worst=1", "--device", node, "--", *command]
    with output.open("w") as file:
        process = subprocess.Popen([STEADY, *whole], stdout=file)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    if status not in (0, GAP):
        raise SystemExit(f"steady {' '.join(whole)}: status {status}")
    return output.read_text(), status == 0


def target_of(disk: Disk) -> Path:
    """What fio reads and writes: a file, or the device."""
    return disk.mount / "data" if disk.mount else Path(disk.node)


def measured(key: Key, disk: Disk, loads: TracedLoads, folder: Path) -> tuple[Seen, bool]:
    """Run one load, write its record; returns what fio saw, and whether the trace is whole."""
    output = folder / "fio.json"
    options = [f"--bs={key.size_kib}k", f"--number_ios={loads.ios[key.size_kib]}"]
    options += ["--ioengine=psync", *key.load.fio]
    options += ["--output-format=json", f"--output={output}"]
    printed, is_whole = traced(disk.node, fio(target_of(disk), loads, *options), folder)
    record = write_record(key, printed, folder)
    if not is_whole:
        print(f"  the trace has a gap: {record['account']}")
    seen = json.loads(output.read_text())["jobs"][0][key.load.op]
    mib_s = seen["io_bytes"] / (1 << 20) / max(1, seen["runtime"]) * MS_PER_S
    return {"ios": seen["total_ios"], "mib_s": round(mib_s, 3)}, is_whole


def measure(keys: list[Key], loads: TracedLoads, folder: Path) -> bool:
    """Run these loads, write their records to the folder; returns whether all are whole."""
    found: dict[str, Seen] = {}
    all_whole = True
    for place in dict.fromkeys(key.place for key in keys):
        with loop_disk(ext4=place == "ext4", direct_io=True) as disk:
            fill = ("--rw=write", "--bs=1m", "--end_fsync=1", "--output=/dev/null")
            run(*fio(target_of(disk), loads, *fill))
            for key in (key for key in keys if key.place == place):
                print(f"[{len(found) + 1}/{len(keys)}] {key.name}", flush=True)
                found[key.name], is_whole = measured(key, disk, loads, folder)
                all_whole &= is_whole
    version = run("fio", "--version").removeprefix("fio-")
    write_runs(version, os.cpu_count() or 1, found, folder)
    return all_whole


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a moment of some, for the tests")
    parser.add_argument("--write", action="store_true", help="make the records of the page")
    arguments = parser.parse_args()
    if arguments.small and arguments.write:
        parser.error("--write wants all loads: leave out --small")
    if os.geteuid() != 0:
        print("skipped: tracing and loop devices need root")
        return 1 if arguments.write else 0
    loads = load_traced_loads(NAME)
    keys = all_keys(loads)
    if arguments.small:
        keys = keys[:: len(keys) // SMALL_LOADS]
        loads = replace(loads, ios=dict.fromkeys(loads.ios, SMALL_IOS))
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        is_whole = measure(keys, loads, folder)
        runs = read_runs(keys, folder)
        for place, kib in dict.fromkeys((key.place, key.size_kib) for key in keys):
            print(shares_table(loads, runs.of(place, kib), f"{place}, {kib} KiB").text())
        print(speeds_table(runs).text())
        if arguments.write:
            return write_records(folder, is_whole)
    return 0


def write_records(folder: Path, is_whole: bool) -> int:
    """Put a whole measurement in the place of the committed one."""
    if not is_whole:
        print("not written: a trace has a gap; run again on an idle machine", file=sys.stderr)
        return 1
    target = RECORDS / f"traces-{NAME}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in folder.glob("*-*k-*.json"):
        shutil.copyfile(file, target / file.name)
    shutil.copyfile(folder / "runs.json", target / "runs.json")
    print(f"{target}: written; now: steady-lab results")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was written, and all is as before", file=sys.stderr)
        sys.exit(130)
