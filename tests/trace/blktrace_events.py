# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests from what blkparse prints of a blktrace, and btt's own summary of it."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stays import Found, Stay
from steady_lab.errors import LabError

# Action, seconds, ns, first sector, sectors, operation.
FORMAT = "%a %T %t %S %n %d\\n"
NS_PER_S = 1_000_000_000
# linux/blktrace_api.h: time, action, length of what follows; notes are of blktrace's own doings.
RECORD = struct.Struct("<8xQ12xI14xH")
NOTE = 1 << 26


@dataclass
class Open:
    """A request that has been issued and has not ended."""

    queued_ns: int | None
    issued_ns: int
    stays: list[Stay]


class Requests:
    """Follows Q, D, R and C events, as blktrace's manual describes them."""

    def __init__(self) -> None:
        self.done: list[Found] = []
        # Queued and not yet issued: (sector, sectors, ns), in order.
        self.bios: list[tuple[int, int, int]] = []
        # By first sector and remaining sectors.
        self.issued: dict[tuple[int, int], list[Open]] = {}
        # Requeued, or the rest of a request that ended in part.
        self.waiting: dict[tuple[int, int], list[Open]] = {}

    def take(self, action: str, time_ns: int, sector: int, sectors: int, is_flush: bool) -> None:
        place = (sector, sectors)
        if action == "Q" and sectors:
            # The same again: io_uring's first try must not wait, and there was no tag.
            self.bios = [bio for bio in self.bios if bio[:2] != place]
            self.bios.append((sector, sectors, time_ns))
        elif action == "D":
            self._issue(place, time_ns)
        elif action == "R" and self.issued.get(place):
            self.waiting.setdefault(place, []).append(self.issued[place].pop(0))
        elif action == "C" and (sectors or is_flush):
            self._end(place, time_ns)

    def _issue(self, place: tuple[int, int], time_ns: int) -> None:
        again = self.waiting.get(place)
        request = again.pop(0) if again else Open(self._first_queued(*place), time_ns, [])
        request.issued_ns = time_ns
        self.issued.setdefault(place, []).append(request)

    def _first_queued(self, sector: int, sectors: int) -> int | None:
        """Take the bios that this request is made of; what is cut off a bio goes on waiting."""
        end, first, left = sector + sectors, None, []
        for bio in self.bios:
            bio_sector, bio_sectors, queued_ns = bio
            bio_end = bio_sector + bio_sectors
            if bio_end <= sector or bio_sector >= end:
                left.append(bio)
                continue
            first = queued_ns if first is None else min(first, queued_ns)
            if bio_sector < sector:
                left.append((bio_sector, sector - bio_sector, queued_ns))
            if bio_end > end:
                left.append((end, bio_end - end, queued_ns))
        self.bios = left
        return first

    def _end(self, place: tuple[int, int], time_ns: int) -> None:
        sector, sectors = place
        whole = self.issued.get(place)
        if whole:
            request = whole.pop(0)
            stays = (*request.stays, Stay(sector, sectors, request.issued_ns, time_ns))
            self.done.append(Found(request.queued_ns, stays))
            return
        larger = [of for of, open_ in self.issued.items() if of[0] == sector and open_]
        if len(larger) != 1 or larger[0][1] < sectors:
            return  # It was issued before the trace.
        request = self.issued[larger[0]].pop(0)
        request.stays.append(Stay(sector, sectors, request.issued_ns, time_ns))
        rest = (sector + sectors, larger[0][1] - sectors)
        self.waiting.setdefault(rest, []).append(request)


def read_blktrace(trace: str, folder: Path) -> list[Found]:
    """Return the requests of a trace: the name that its files begin with, in a folder.

    Times are those of the kernel's monotonic clock.
    """
    text = _run(folder, "blkparse", "-q", "-i", trace, "-f", FORMAT)
    begins_ns = (_first_event_ns(path) for path in folder.glob(f"{trace}.blktrace.*"))
    start_ns = min((begin_ns for begin_ns in begins_ns if begin_ns is not None), default=0)
    requests = Requests()
    for fields in _lines(text):
        action, seconds, ns, sector, sectors, operation = fields
        time_ns = start_ns + int(seconds) * NS_PER_S + int(ns)
        requests.take(action, time_ns, int(sector), int(sectors), operation.startswith("F"))
    return requests.done


def _first_event_ns(records: Path) -> int | None:
    """Return when the first event of a CPU was: blkparse counts from the first of all."""
    data, at = records.read_bytes(), 0
    while at < len(data):
        time_ns, action, more_bytes = RECORD.unpack_from(data, at)
        if not action & NOTE:
            return int(time_ns)
        at += RECORD.size + more_bytes
    return None


def _lines(text: str) -> Iterable[list[str]]:
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 6 and fields[0] in {"Q", "D", "R", "C"}:
            yield fields


@dataclass(frozen=True)
class Summary:
    """A line of btt's table of all devices, in ns."""

    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    count: int


def btt_d2c(trace: str, folder: Path) -> Summary:
    """Return btt's D2C; raises LabError if it prints none."""
    _run(folder, "blkparse", "-q", "-i", trace, "-d", f"{trace}.bin", "-O")
    text = _run(folder, "btt", "-i", f"{trace}.bin")
    line = re.search(r"^D2C +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)$", text, re.MULTILINE)
    if line is None:
        raise LabError(f"btt prints no D2C:\n{text[:2000]}")
    low, mean, high = (float(line[number]) * NS_PER_S for number in (1, 2, 3))
    return Summary(round(low), mean, round(high), int(line[4]))


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")
    return done.stdout
