# SPDX-License-Identifier: MIT OR Apache-2.0
"""The loads of the e.MMC analysis paper under `steady trace`: in the lab, and on this machine.

The loads and places are those of experiments/traces/s5.toml; fio runs each for itself. In the lab
the place is an emulated card on a stock kernel, and QEMU a host that takes the same time for each
instruction; each load runs there without tracing, too. Here it is a loop device. With --write,
which takes a quarter of an hour and wants an idle machine, the traces become the records of
docs/results/s5.md; `steady-lab results` then writes the page.

Called by scripts/bench. No time is asserted; that every load is in its trace is.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from steady_lab.figures.traced_loads import Place, TracedLoads, load_traced_loads
from steady_lab.kernels.stock import stock_kernel
from steady_lab.pages.results import RECORDS
from steady_lab.pages.spans import shares_table, speeds_table
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.traced_runs import (
    Key,
    Means,
    add_runs,
    all_keys,
    means_of,
    read_runs,
    write_record,
    write_runs,
)
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.targets.qemu import Qemu
from steady_lab.targets.target import BootRequest

sys.path.insert(0, str(PROJECT / "tests" / "trace"))

from loop_disk import STEADY, loop_disk, run

NAME = "s5"
SMALL_IOS, SMALL_LOADS = 50, 2
SEED = 7
MS_PER_S = 1000
# Exit status of `steady trace`: the trace has a gap, which its account shows.
GAP = 3
KERNEL = "6.12"
GUEST_SCRIPT = f"{GUEST_PROJECT}/tests/bench/spans_in_guest.sh"
GUEST_MOUNT = "/tmp/card"
# As in kernels of the paper's age, no page is zeroed when it is allocated. And a copy is of words,
# not bytes.
ARGUMENTS = ("init_on_alloc=0", "clearcpuid=erms,fsrm")
BOOT_TIMEOUT_S = 3600
BOOTS_AT_ONCE = 2


@dataclass(frozen=True)
class Traced:
    """One run of one load: what `steady trace` and fio printed, fio in the lab also untraced."""

    key: Key
    trace: str
    fio: str
    is_whole: bool
    alone: str = ""

    def means(self) -> Means:
        """What runs.json has of it."""
        found = means_of(self.key, json.loads(self.trace)) | {"mib_s": self._mib_s(self.fio)}
        return found | ({"untraced_mib_s": self._mib_s(self.alone)} if self.alone else {})

    def _mib_s(self, printed: str) -> float:
        seen = json.loads(printed)["jobs"][0][self.key.load.op]
        mib_s: float = seen["io_bytes"] / (1 << 20) / max(1, seen["runtime"]) * MS_PER_S
        return round(mib_s, 3)


def fio(target: Path, place: Place, *options: str) -> list[str]:
    """The command for one job on this file or device, in a part that has room for every load."""
    file_kib = max(kib * ios for kib, ios in place.ios.items())
    command = ["fio", "--name=load", f"--filename={target}", f"--size={file_kib}k", "--eta=never"]
    return [*command, *options]


def fill(target: Path, place: Place) -> list[str]:
    """The command that writes all of it first."""
    return fio(target, place, "--rw=write", "--bs=1m", "--end_fsync=1")


def load(target: Path, key: Key, number: int) -> list[str]:
    """The command of one load; each run has its own random places."""
    options = [f"--bs={key.size_kib}k", f"--number_ios={key.ios}", f"--randseed={SEED + number}"]
    options += ["--ioengine=psync", "--output-format=json", *key.load.fio]
    return fio(target, key.place, *options)


def run_here(keys: list[Key], number: int, folder: Path) -> Iterator[Traced]:
    """Run the loads of a place on a loop device.

    A Ctrl-C reaches `steady`, too; then what it has set in the kernel must be back before the
    device goes, so it is waited for.
    """
    place = keys[0].place
    with loop_disk(ext4=place.ext4, direct_io=True) as disk:
        target = disk.mount / "data" if disk.mount else Path(disk.node)
        run(*fill(target, place), "--output=/dev/null")
        for key in keys:
            print(f"[run {number + 1}] {key.name}", flush=True)
            command = load(target, key, number)
            output = [folder / f"{key.name}.{what}" for what in ("trace", "fio")]
            traced = [*command, f"--output={output[1]}"]
            options = ["trace", "--json", "--worst=1", "--device", disk.node, "--", *traced]
            with output[0].open("w") as file:
                process = subprocess.Popen([STEADY, *options], stdout=file)
                try:
                    status = process.wait()
                except KeyboardInterrupt:
                    process.wait()
                    raise
            if status not in (0, GAP):
                raise SystemExit(f"steady {' '.join(options)}: status {status}")
            trace, seen = (path.read_text() for path in output)
            yield Traced(key, trace, seen, status == 0)


def run_in_lab(cancelled: Event, keys: list[Key], number: int, folder: Path) -> list[Traced]:
    """Run the loads of a place in a guest with the emulated card; `cancelled` ends it."""
    place, target = keys[0].place, Path(GUEST_MOUNT) / "data"
    plan = [f"fill\t{shlex.join(fill(target, place))}"]
    plan += [f"{key.name}\t{shlex.join(load(target, key, number))}" for key in keys]
    (folder / "plan").write_text("\n".join(plan) + "\n")
    command = ["sh", GUEST_SCRIPT, f"{GUEST_PROJECT}/build/bin/steady", GUEST_MOUNT]
    kernel = stock_kernel(KERNEL)
    machine = Qemu(kernel, 1, instruction_ns=place.instruction_ns, arguments=ARGUMENTS)
    request = BootRequest(
        command,
        folder,
        device=place.device,
        modules=["ext4"],
        timeout_s=BOOT_TIMEOUT_S,
        on_output=lambda line: print(f"[run {number + 1}, lab] {line}".rstrip(), flush=True),
        cancelled=cancelled,
    )
    result = machine.boot(request)
    if result.exit_status != 0:
        raise SystemExit(f"the guest failed with {result.exit_status}:\n{result.output}")
    whole = (folder / "whole").read_text().split() if (folder / "whole").exists() else []
    found = []
    for key in keys:
        files = [folder / f"{key.name}.{what}" for what in ("trace", "fio", "alone")]
        trace, seen, alone = (file.read_text() for file in files)
        found.append(Traced(key, trace, seen, key.name in whole, alone))
    return found


def measure(keys: list[Key], loads: TracedLoads, folder: Path) -> bool:
    """Run these loads, write their records to the folder; returns whether all are whole."""
    orders: list[tuple[list[Key], int, Path]] = []
    for number in range(loads.runs):
        for place in loads.places:
            own = folder / f"{place.name}-{number}"
            own.mkdir()
            orders.append(([key for key in keys if key.place == place], number, own))
    found: list[Traced] = []
    for order in (order for order in orders if not order[0][0].place.device):
        found += run_here(*order)
    cancelled = Event()
    with ThreadPoolExecutor(BOOTS_AT_ONCE) as pool:
        in_lab = [order for order in orders if order[0][0].place.device]
        try:
            for own_runs in pool.map(lambda order: run_in_lab(cancelled, *order), in_lab):
                found += own_runs
        except BaseException:
            cancelled.set()
            raise
    write_middle(keys, found, folder)
    return all(traced.is_whole for traced in found)


def write_middle(keys: list[Key], found: list[Traced], folder: Path) -> None:
    """Write of each load the run in the middle, and the means of all."""
    runs: dict[str, list[Means]] = {}
    machines: dict[str, dict[str, Any]] = {}
    for key in keys:
        own = [(one.means(), one) for one in found if one.key == key]
        own.sort(key=lambda of_one: sum(of_one[0][f"{span}_us"] for span in SPANS))
        _, middle = own[len(own) // 2]
        write_record(key, middle.trace, folder)
        runs[key.name] = [means for means, _ in own]
        version = json.loads(middle.fio)["fio version"].removeprefix("fio-")
        cpus = 1 if key.place.device else os.cpu_count() or 1
        machines[key.place.name] = {"fio": version, "cpus": cpus}
    write_runs(machines, runs, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a moment of some, for the tests")
    parser.add_argument("--write", action="store_true", help="make the records of the page")
    parser.add_argument("--place", metavar="NAME", action="append", help="only there [all]")
    arguments = parser.parse_args()
    if arguments.small and arguments.write:
        parser.error("--write wants all loads: leave out --small")
    if os.geteuid() != 0:
        print("skipped: tracing and loop devices need root")
        return 1 if arguments.write else 0
    loads = load_traced_loads(NAME)
    if arguments.small:
        loads = small(loads)
    if arguments.place:
        loads = of_places(loads, arguments.place)
    keys = all_keys(loads)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        is_whole = measure(keys, loads, folder)
        runs = read_runs(keys, folder)
        for place in loads.places:
            for kib in place.ios:
                caption = f"{place.title}, {kib} KiB"
                print(shares_table(loads, runs.of(place, kib), caption).text())
        print(speeds_table(runs).text())
        if arguments.write:
            return write_records(folder, is_whole)
    return 0


def small(loads: TracedLoads) -> TracedLoads:
    """A few I/Os of some loads, here and on one card of the lab."""
    first, *others = loads.places
    places = [first, *(place for place in others if not place.device)]
    places = [replace(p, ios=dict.fromkeys(p.ios, SMALL_IOS)) for p in places]
    some = loads.loads[:: len(loads.loads) // SMALL_LOADS]
    return replace(loads, runs=1, places=tuple(places), loads=some)


def of_places(loads: TracedLoads, names: list[str]) -> TracedLoads:
    """The same loads in these places only."""
    known = {place.name: place for place in loads.places}
    if unknown := set(names) - set(known):
        raise SystemExit(f"--place {min(unknown)}: known are {', '.join(known)}")
    return replace(loads, places=tuple(known[name] for name in names))


def write_records(folder: Path, is_whole: bool) -> int:
    """Put a measurement in the place of the committed one, as far as it goes."""
    if not is_whole:
        print("not written: a trace has a gap; run again on an idle machine", file=sys.stderr)
        return 1
    target = RECORDS / f"traces-{NAME}"
    known = {key.name for key in all_keys(load_traced_loads(NAME))}
    for file in target.glob("*-*k-*.json"):
        if file.stem not in known:
            file.unlink()
    for file in folder.glob("*-*k-*.json"):
        shutil.copyfile(file, target / file.name)
    add_runs(folder, target)
    print(f"{target}: written; now: steady-lab results")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was written, and all is as before", file=sys.stderr)
        sys.exit(130)
