# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's inputs for a case: the card, the data to write, and a script."""

from __future__ import annotations

import random
from pathlib import Path

from steady_lab.paths import GUEST_PROJECT
from steady_lab.search import recording
from steady_lab.search.case import Case
from steady_lab.search.sets import TaskSet, task_set, toml

CARD, PROFILE, TASKS, WORKLOAD = "card.toml", "profile.toml", "tasks.toml", "workload.toml"
RECORD, COUNTERS, WRONG, WRITE_LOG = "record.json", "counters", "wrong", "write.log"
# Each writer has its own region, far behind those of the others.
REGION_KIB = 16 * 1024

_HEAD = """set -e
disk=${STEADY_DEVICE##*/}
echo k2 >/sys/block/$disk/queue/scheduler
: >wrong
write() { # NUMBER CLASS KIB BLOCKS REGION
    block=0
    while [ $block -lt $4 ]; do
        if ionice -c $2 dd if=data.$1 of=$STEADY_DEVICE bs=${3}k skip=$block \\
            seek=$(($5 / $3 + block)) count=1 oflag=direct,sync conv=notrunc status=none 2>>errors
        then
            echo "$block $(date +%s%N)" >>durable.$1
        fi
        block=$((block + 1))
    done
}
check() { # NUMBER KIB REGION
    while read block synced; do
        for of in data.$1 $STEADY_DEVICE; do
            at=$block
            [ $of = data.$1 ] || at=$(($3 / $2 + block))
            dd if=$of bs=${2}k skip=$at count=1 status=none | sha256sum
        done | uniq | wc -l | grep -qx 1 || echo "writer $1 block $block" >>wrong
    done <durable.$1
}
"""
_COUNTERS = """sleep 1
cat /sys/kernel/debug/block/$disk/sched/counters >counters
"""
_BENCH = f"""{GUEST_PROJECT}/build/bin/steady-guest bench {WORKLOAD} --device=$STEADY_DEVICE \\
    --destroy-data=$disk --out={RECORD} >bench.out 2>&1 || {{ cat bench.out; exit 1; }}
"""


def script(case: Case) -> str:
    """Return the guest's script, which runs in the work folder."""
    lines = [_HEAD]
    lines += [
        f"echo {value} >/sys/block/$disk/queue/iosched/{name}" for name, value in case.knobs.items()
    ]
    if case.recording:
        return "\n".join([*lines, recording.script(case.recording, case.planted), _COUNTERS])
    numbered = list(enumerate(case.writers))
    for number, writer in numbered:
        region = number * REGION_KIB
        words = f"{number} {writer['class']} {writer['kib']} {writer['blocks']} {region}"
        lines += [f": >durable.{number}", f"write {words} &"]
    # The kernel keeps no data of direct writes in memory; reads come from the card.
    lines += ["wait", case.planted or ":", "echo 3 >/proc/sys/vm/drop_caches"]
    for number, writer in numbered:
        lines.append(f"check {number} {writer['kib']} {number * REGION_KIB}")
    lines.append(_COUNTERS)
    if case.tasks:
        lines.append(_BENCH)
    return "\n".join(lines) + "\n"


def data_of(case: Case, number: int) -> bytes:
    """Return the data of a writer."""
    writer = case.writers[number]
    return random.Random(f"{case.seed} {number}").randbytes(writer["kib"] * 1024 * writer["blocks"])


def set_of(case: Case) -> TaskSet:
    """Return the tasks, as `steady bound` and `steady bench` read them."""
    assert case.background
    return task_set(
        f"case-{case.seed}", case.seed, list(case.tasks), case.background, case.knobs, case.seconds
    )


def give(case: Case, folder: Path) -> None:
    """Write it all."""
    (folder / CARD).write_text(toml(case.card), encoding="utf-8")
    (folder / PROFILE).write_text(toml(case.profile or case.card), encoding="utf-8")
    for number in range(len(case.writers)):
        (folder / f"data.{number}").write_bytes(data_of(case, number))
    if case.tasks:
        made = set_of(case)
        (folder / TASKS).write_text(toml(made.tasks), encoding="utf-8")
        (folder / WORKLOAD).write_text(toml(made.workload), encoding="utf-8")
