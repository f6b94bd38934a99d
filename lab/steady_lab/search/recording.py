# SPDX-License-Identifier: MIT OR Apache-2.0
"""A case's recording: `steady record` on ext4, perhaps a power cut under it, and its ledger.

The card loses power once in the guest, with all that its cache holds; then it is mounted again,
recovered, and read.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steady_lab.devices.emmc import EMMC
from steady_lab.paths import GUEST_PROJECT
from steady_lab.search.finding import Finding

RESULT, ACCOUNT, OUTPUT = "result.json", "account", "record.out"
RECOVERED, STATUS = "recovered.json", "status"
CAPACITY_MIB = 64
# Exit statuses of `steady record`: done, not every record durable, the device failed.
STATUS_DURABLE, STATUS_LOST, STATUS_DEVICE_FAILED = "0", "3", "5"
# The segment that is being overwritten, and from its last eighth on the one after it.
NOT_KEPT_MAX = 2
# The card loses power once the recorder's account has begun, and this much later.
_CUT = f"""while [ ! -s {ACCOUNT} ] && kill -0 $! 2>/dev/null; do sleep 0.001; done
sleep {{seconds}}
echo 1 >/sys/kernel/debug/{EMMC.module.name}/power_cut"""


def random_recording(pick: random.Random) -> dict[str, int]:
    """Draw the recording, and the power cut, in ms after the first line of the account."""
    period_us, record_bytes = pick.choice((200, 1000, 5000)), pick.choice((256, 1024, 4000))
    records = pick.randint(50, min(6000, 4_000_000 // period_us, 3_000_000 // record_bytes))
    duration_ms = records * period_us // 1000
    return {
        "period_us": period_us,
        "bytes": record_bytes,
        "records": records,
        "segments": pick.randint(2, 5),
        "segment_kib": pick.choice((512, 1024)),
        "unit_kib": pick.choice((16, 64)),
        "loss_window_ms": pick.choice((20, 40, 200)),
        "cut_ms": pick.choice((0, pick.randint(1, duration_ms), pick.randint(1, duration_ms))),
    }


def random_disk(pick: random.Random, card: dict[str, Any]) -> None:
    """Make a card small enough for a file system, and more often one with a volatile cache."""
    card["card"]["capacity_mib"] = CAPACITY_MIB
    if pick.random() < 0.7:
        card["cache"] = {"kib": pick.choice((256, 1024)), "base_ns": 20_000, "per_kib_ns": 4_000}


def script(recording: dict[str, int], planted: str) -> str:
    """Return the guest's script, with `planted` before the recording."""
    steady = f"{GUEST_PROJECT}/build/bin/steady"
    card, cut_ms = EMMC.module.name, recording["cut_ms"]
    return f"""
mounted() {{ mount -t ext4 -o noatime $STEADY_DEVICE /run/mnt; }}
mkfs.ext4 -q -U 6d7c1f3a-0000-4000-8000-000000000003 -J size=4 \\
    -E lazy_itable_init=0,lazy_journal_init=0,hash_seed=6d7c1f3a-0000-4000-8000-000000000004 \\
    $STEADY_DEVICE
mkdir -p /run/mnt
mounted
{planted or ":"}
{steady} record --dir /run/mnt/kept --quiet {_options(recording)} \\
    --account-log {ACCOUNT} --out {RESULT} >{OUTPUT} 2>&1 &
{_CUT.format(seconds=cut_ms / 1000) if cut_ms else ":"}
result=0
wait $! || result=$?
echo $result >{STATUS}
umount /run/mnt
for action in unbind bind; do
    echo {card} >/sys/bus/platform/drivers/{card}/$action
done
while [ ! -b $STEADY_DEVICE ]; do sleep 0.01; done
echo k2 >/sys/block/$disk/queue/scheduler
mounted
{steady} recover --verify --json /run/mnt/kept >{RECOVERED} 2>>{OUTPUT} || rm {RECOVERED}
umount /run/mnt
"""


def _options(recording: dict[str, int]) -> str:
    given = {
        "period": f"{recording['period_us']}us",
        "size": recording["bytes"],
        "total": recording["records"] * recording["bytes"],
        "segments": recording["segments"],
        "segment-size": f"{recording['segment_kib']}KiB",
        "unit": f"{recording['unit_kib']}KiB",
        "loss-window": f"{recording['loss_window_ms']}ms",
    }
    return " ".join(f"--{name} {value}" for name, value in given.items())


def judge_recording(recording: dict[str, int], folder: Path) -> Iterator[Finding]:
    """Yield the differences between the ledger and the card."""
    status, output = (folder / STATUS).read_text().strip(), (folder / OUTPUT).read_text()[-300:]
    allowed = [STATUS_DURABLE, STATUS_LOST]
    if recording["cut_ms"]:
        allowed.append(STATUS_DEVICE_FAILED)
    if status not in allowed:
        yield Finding("ledger", f"steady record ended with {status}: {output}")
        return
    if not (folder / RECOVERED).exists():
        yield Finding("ledger", f"steady recover: {output}")
        return
    total = _records(json.loads((folder / RESULT).read_text())["ledger"]["total"])
    yield from _balance(total, status)
    yield from _account(folder / ACCOUNT, total)
    yield from _kept(recording, json.loads((folder / RECOVERED).read_text()), total)


def _records(account: dict[str, Any]) -> dict[str, int]:
    counts = {name: value["records"] for name, value in account.items() if isinstance(value, dict)}
    return counts | {"lost": counts["lost_ring_full"] + counts["lost_in_writing"]}


def _balance(total: dict[str, int], status: str) -> Iterator[Finding]:
    if total["received"] != total["written"] + total["lost"] or total["durable"] > total["written"]:
        yield Finding("ledger", f"the books do not balance: {total}")
    if (status == STATUS_DURABLE) != (total["durable"] == total["received"]):
        yield Finding("ledger", f"status {status}, with {total}")


def _account(log: Path, total: dict[str, int]) -> Iterator[Finding]:
    """Nothing is durable that was not received, and nothing is taken back over time.

    A written record may be lost before it is durable.
    """
    lines = [tuple(map(int, line.split()[1:])) for line in log.read_text().splitlines()]
    lines.append((total["received"], total["written"], total["durable"], total["lost"]))
    growing = [(line[0], line[1] + line[3], *line[2:]) for line in lines]
    for earlier, later in itertools.pairwise(growing):
        if any(after < before for before, after in zip(earlier, later, strict=True)):
            yield Finding("ledger", f"the account goes back: {earlier}, then {later}")
    for received, written, durable, lost in lines:
        if not durable <= written <= received - lost:
            yield Finding("ledger", f"account: {durable=} {written=} {received=} {lost=}")


def _kept(
    recording: dict[str, int], recovered: dict[str, Any], total: dict[str, int]
) -> Iterator[Finding]:
    """Durable records are in order and without a gap; only the oldest may be overwritten."""
    contents = [file["contents"] for file in recovered["files"] if file["contents"]]
    channels = [channel for content in contents for channel in content["channels"]]
    parts = [(channel["digest"], channel["ledger"]) for channel in channels if channel["messages"]]
    parts.sort(key=lambda part: part[0]["sequence_first"])
    first, end = (parts[0][0]["sequence_first"], parts[-1][0]["sequence_last"]) if parts else (1, 0)
    if end < total["durable"]:
        yield Finding("ledger", f"{total['durable']} were durable, {end} are there")
    # After the durable records, a later block may have arrived without an earlier one.
    missing = end - first + 1 - sum(channel["messages"] for channel in channels)
    if not total["lost_ring_full"] and not 0 <= missing <= max(end - total["durable"] - 1, 0):
        yield Finding(
            "ledger", f"{missing} are missing from {first} to {end}, {total['durable']} durable"
        )
    kept_min = recording["segments"] - NOT_KEPT_MAX
    if first > 1 and not total["lost_ring_full"] and len(parts) < kept_min:
        yield Finding("ledger", f"only {len(parts)} segments are kept, of {recording['segments']}")
    for digest, ledger in parts:
        if ledger["durable"] > digest["sequence_last"]:
            yield Finding("ledger", f"a file tells of {ledger['durable']} durable, has {digest}")
