# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings in the guest, on a new file system, perhaps next to a program.

A spec (schema "steadyio.recording-spec/1", docs/spec/recording-spec-1.md) names the source, the
file system and, as variants, recipes. Here it becomes the script that the guest runs under `steady
with`, which makes the record from the files of the script.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from steady_lab.toml_table import Table

RECORDS_MAX = 100_000_000
PERIOD_US_MAX = 60_000_000
RECORD_KIB_MAX = 8192
FILESYSTEM_MIB = (64, 16_777_216)
RESULT = "recording.json"
POOL = "pool"  # `steady record`, whose files are made before the recording
CARD, MEMORY = "card", "memory"
FOLDERS = {CARD: "/run/card", MEMORY: "/run"}  # in the guest, by a variant's `place`
BACKGROUND_OUTPUT = "background.txt"


@dataclass(frozen=True)
class Filesystem:
    """An ext4 file system from the start of the card."""

    mib: int
    mkfs: tuple[str, ...]
    mount: str


@dataclass(frozen=True)
class Recording:
    """The spec of a recording; `arguments` are for `steady record`, for each recipe."""

    records: int
    period_us: int
    record_kib: int
    arguments: tuple[str, ...]
    filesystem: Filesystem
    background_prepare: str
    background_run: str


def take_recording(spec: Table) -> Recording:
    """Read a spec except its name and variants; raises SpecError."""
    length, source, background = (spec.table(key) for key in ("length", "source", "background"))
    recording = Recording(
        records=length.integer("records", 1, RECORDS_MAX),
        period_us=source.integer("period_us", 1, PERIOD_US_MAX),
        record_kib=source.integer("record_kib", 1, RECORD_KIB_MAX),
        arguments=take_arguments(spec),
        filesystem=_filesystem(spec.table("filesystem")),
        background_prepare=_shell(background, "prepare"),
        background_run=_shell(background, "run"),
    )
    for table in (length, source, background):
        table.close()
    return recording


def take_arguments(table: Table) -> tuple[str, ...]:
    """Read `arguments`, empty if there are none; `steady record` knows which there are."""
    allowed = "an array of arguments of `steady record`"
    arguments = table.items("arguments", allowed) if table.has("arguments") else []
    if not all(isinstance(argument, str) for argument in arguments):
        raise table.fail("arguments", allowed)
    return tuple(arguments)


def _filesystem(table: Table) -> Filesystem:
    allowed = "an array of arguments of mkfs.ext4"
    mkfs = table.items("mkfs", allowed)
    if not all(isinstance(argument, str) for argument in mkfs):
        raise table.fail("mkfs", allowed)
    found = Filesystem(
        mib=table.integer("mib", *FILESYSTEM_MIB), mkfs=tuple(mkfs), mount=table.text("mount")
    )
    table.close()
    return found


def _shell(table: Table, key: str) -> str:
    """Read shell commands, which may be empty: a figure's panel can set them."""
    commands = table.take(key, "shell commands, or an empty string")
    if not isinstance(commands, str):
        raise table.fail(key, "shell commands, or an empty string")
    return commands


_TEMPLATE = """#!/bin/sh
# Written by steady-lab for one recording; runs in the guest's work folder.
set -eu
work=$PWD
mkfs.ext4 -q -F {mkfs} "$STEADY_DEVICE" {mib}m
mkdir /run/card
mount -t ext4 -o {mount} "$STEADY_DEVICE" /run/card
cd /run/card
{prepare}
{make_pool}
sync
# A program that ends is started again, until the recording ends; SIGINT lets dd say how far it got.
background() {{
    running=
    trap 'kill -INT "$running" || :; wait "$running" || :; exit 0' TERM
    while :; do
        env --default-signal=INT sh -c {run} &
        running=$!
        wait "$running"
    done
}}
background=
if [ -n {run} ]; then
    background 2>"$work/{background_output}" &
    background=$!
fi
{record}
if [ -n "$background" ]; then
    kill "$background"
    wait "$background"
fi
cd /
umount /run/card
"""


def classes_of(recording: Recording) -> tuple[str, str]:
    """Return the script's results in the work folder, as options of `steady with --class`.

    Class bg is the dd next to the recorder or, where there is none, the recorder's own changes from
    one file or segment to the next.
    """
    background = (
        f"dd:{BACKGROUND_OUTPUT}" if recording.background_run else f"recording-changes:{RESULT}"
    )
    return f"rt=recording:{RESULT}", f"bg={background}"


def recording_script(
    recording: Recording, program: str, recipe: str, more: Sequence[str], place: str = CARD
) -> str:
    """Return the guest's script; `more` are the variant's arguments.

    `program` is `steady` for a pool, `steady-recipe` for another recipe.

    A pool is made before the background program starts: making it costs the card far more than
    recording.
    """
    command = [
        *(program, *(("record", "--quiet") if recipe == POOL else (recipe,))),
        *(f"--period={recording.period_us}us", f"--size={recording.record_kib}KiB"),
        *recording.arguments,
        *more,
        *("--dir", f"{FOLDERS[place]}/recording"),
    ]
    total = f"--total={recording.records * recording.record_kib}KiB"
    return _TEMPLATE.format(
        mkfs=shlex.join(recording.filesystem.mkfs),
        mib=recording.filesystem.mib,
        mount=shlex.quote(recording.filesystem.mount),
        prepare=recording.background_prepare or ":",
        make_pool=shlex.join([*command, "--prepare"]) if recipe == POOL else ":",
        run=shlex.quote(recording.background_run),
        background_output=BACKGROUND_OUTPUT,
        record=f'{shlex.join([*command, total])} --out "$work/{RESULT}"',
    )
