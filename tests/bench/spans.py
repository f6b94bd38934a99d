# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the time of I/Os goes on this machine: S5's loads under `steady trace`, on a loop device.

The loads are those of experiments/traces/s5.toml; fio runs each for itself, on ext4 and on the
device below. With --write, which takes 2 to 3 minutes and wants an idle machine, the traces become
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
from pathlib import Path
from typing import Any

from steady_lab.figures.traced_loads import TracedLoads, load_traced_loads
from steady_lab.pages.results import RECORDS
from steady_lab.pages.spans import shares_table, speeds_table
from steady_lab.pages.traced_runs import Key, all_keys, read_runs, write_record, write_runs
from steady_lab.paths import BUILD, PROJECT

sys.path.insert(0, str(PROJECT / "tests" / "trace"))

from loop_disk import STEADY, Disk, loop_disk, run

NAME = "s5"
SMALL_IOS, SMALL_LOADS = 20, 4
SEED = 7
# Of `steady trace`: the trace has a gap, which its account tells.
GAP = 3


def fio(target: Path, file_kib: int, *options: str) -> list[str]:
    """The command for one job on this file or device."""
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


def measured(key: Key, disk: Disk, ios: int, file_kib: int, folder: Path) -> dict[str, Any]:
    """Run one load, write its record, and return what fio saw."""
    target = disk.mount / "data" if disk.mount else Path(disk.node)
    output = folder / "fio.json"
    options = [f"--bs={key.size_kib}k", f"--number_ios={ios}", "--ioengine=psync", *key.load.fio]
    options += ["--output-format=json", f"--output={output}"]
    printed, is_whole = traced(disk.node, fio(target, file_kib, *options), folder)
    record = write_record(key, printed, folder)
    seen = json.loads(output.read_text())["jobs"][0][key.load.op]
    if not is_whole:
        print(f"  the trace has a gap: {record['account']}")
    return {
        "ios": seen["total_ios"],
        "mib_s": round(seen["bw_bytes"] / (1 << 20), 3),
        "is_whole": is_whole,
    }


def measure(keys: list[Key], loads: TracedLoads, ios: int, folder: Path) -> bool:
    """Run these loads, write their records to the folder; returns whether all are whole."""
    found: dict[str, dict[str, Any]] = {}
    file_kib = ios * max(loads.sizes_kib)
    for place in dict.fromkeys(key.place for key in keys):
        with loop_disk(ext4=place == "ext4", direct_io=True) as disk:
            target = disk.mount / "data" if disk.mount else Path(disk.node)
            run(
                *fio(
                    target, file_kib, "--rw=write", "--bs=1m", "--end_fsync=1", "--output=/dev/null"
                )
            )
            for key in (key for key in keys if key.place == place):
                print(f"[{len(found) + 1}/{len(keys)}] {key.name}", flush=True)
                found[key.name] = measured(key, disk, ios, file_kib, folder)
    is_whole = all(each.pop("is_whole") for each in found.values())
    version = run("fio", "--version").removeprefix("fio-")
    write_runs(version, os.cpu_count() or 1, found, folder)
    return is_whole


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
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        is_whole = measure(keys, loads, SMALL_IOS if arguments.small else loads.ios, folder)
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
