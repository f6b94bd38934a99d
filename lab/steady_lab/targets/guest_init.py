# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's init: a shell script that prepares the guest, runs one command and powers off.

Called by targets. The guest's root is the lab's own, read-only; everything that needs writing is a
tmpfs of the guest or the one work folder.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steady_lab.paths import GUEST_KERNEL, GUEST_PROJECT, GUEST_WORK

# What the guest sees of the host, in the order of mounting.
SHARED_PLACES = (GUEST_WORK, GUEST_PROJECT, GUEST_KERNEL)

# Programs see the processor as a plain x86-64, so that they look for libraries in the same places:
# looking for a missing file costs virtual time (docs/reference/reproducible.md).
_HIDDEN = (
    *("SSSE3", "SSE4_1", "SSE4_2", "POPCNT", "AVX", "AVX2", "AVX512F", "AVX512VL", "AVX512BW"),
    *("BMI1", "BMI2", "ERMS", "FMA", "LZCNT", "MOVBE", "RTM", "XSAVEC", "AVX_Fast_Unaligned_Load"),
)
PROCESSOR = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in _HIDDEN)
# Exit status of the guest when it could not even start the command.
STATUS_SETUP_FAILED = 125


@dataclass(frozen=True)
class ModuleLoad:
    """One module: its file as the guest sees it, and its parameters (`key=value`).

    `unload`: must be possible after the command. False for dependencies; some of the kernel's own
    modules cannot be unloaded. `program` loads it: `insmod`, or `modprobe` for a name.
    """

    path: Path
    params: Sequence[str] = ()
    unload: bool = True
    program: Sequence[str] = ("insmod",)


@dataclass(frozen=True)
class Console:
    """The terminal for the command's output, and how each shared place is mounted, as commands.

    `finish`, before power off: what makes sure that all output has left. `idle`: what the shell
    does until it is off.
    """

    terminal: str
    mounts: Sequence[Sequence[str]]
    finish: Sequence[str] = ("sync",)
    idle: str = "sleep 100"


@dataclass(frozen=True)
class GuestRun:
    """One command in a guest, with its modules in order of loading and its device's `node`.

    `node_comes_early`: when the kernel makes it, the disk cannot be opened yet. `folder`, below the
    work folder, is where the command runs.
    """

    command: Sequence[str]
    loads: Sequence[ModuleLoad]
    node: str
    environment: Mapping[str, str]
    node_comes_early: bool = False
    folder: str = ""

    def set_up(self, load: Sequence[str] = ()) -> str:
        """Return the lines before the command; `load` is what each module is loaded with."""
        words = [[*load, *one.program, str(one.path), *one.params] for one in self.loads]
        lines = [f"need {shlex.join(line)}" for line in words]
        lines += [f"export {key}={shlex.quote(value)}" for key, value in self.environment.items()]
        is_there = "can_be_opened" if self.node_comes_early else "is_there"
        return "\n".join([*lines, f"need wait_for {is_there} {self.node}" if self.node else ":"])

    @property
    def unload(self) -> str:
        """Return the modules to unload after the command."""
        return " ".join(one.path.stem for one in reversed(self.loads) if one.unload)


_HEAD = """#!/bin/sh
# Written by steady-lab for one boot.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/run/home LANG=C LC_ALL=C TZ=UTC GLIBC_TUNABLES={processor}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/null >{terminal} 2>&1
stty -F {terminal} -opost

say() {{ echo "steady-lab: $*" >/dev/kmsg; }}
power_off() {{
    {finish}
    say "exit status $1"
    echo o >/proc/sysrq-trigger
    {idle}
}}
need() {{
    "$@" && return
    echo "steady-lab: in the guest, failed: $*"
    power_off {setup_failed}
}}
is_there() {{ [ -b "$1" ]; }}
can_be_opened() {{ true 2>/dev/null <"$1"; }}
wait_for() {{
    for _ in $(seq 1000); do
        "$@" && return
        sleep 0.01
    done
    return 1
}}
unload() {{
    for scheduler in /sys/block/*/queue/scheduler; do
        names=
        read -r names 2>/dev/null <"$scheduler"
        case $names in *'[k2]'*) echo none >"$scheduler" ;; esac
    done
    for module; do
        rmmod "$module" || say "trouble: rmmod $module failed after the command had ended"
    done
}}
limit_time() {{
    ( sleep {virtual_timeout_s}
      say "trouble: still running after {virtual_timeout_s} virtual seconds"
      echo o >/proc/sysrq-trigger ) &
}}

for place in /run /tmp /dev/shm; do
    [ -d $place ] || mkdir $place
    need mount -t tmpfs tmpfs $place
done
need mount -t debugfs debugfs /sys/kernel/debug
need mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p {places} "$HOME"
{mounts}
"""

_ONE = """cd {work} || power_off {setup_failed}
limit_time
{set_up}
{command}
status=$?
cd /
[ $status -ne 0 ] || unload {unload}
power_off $status
"""

# Each run is cleaned up after, so that the next one finds the guest as it was after its boot.
_IN_TURN = """mounts=$(wc -l </proc/mounts)
tracing=/sys/kernel/tracing
need() {{
    "$@" && return
    echo "steady-lab: in the guest, failed: $*"
    exit {setup_failed}
}}
load() {{
    name=$(basename "$2" .ko | tr - _)
    grep -q "^$name " /proc/modules || "$@"
}}
unmount() {{
    tail -n +$((mounts + 1)) /proc/mounts | tac | while read -r _ place kind _; do
        [ "$kind" != cgroup2 ] || find "$place" -mindepth 1 -depth -type d -exec rmdir {{}} +
        umount "$place"
    done
}}
stop_tracing() {{
    echo 0 >$tracing/tracing_on
    echo >$tracing/set_event
    echo local >$tracing/trace_clock
    echo >$tracing/trace
    echo 1 >$tracing/tracing_on
}}
clean_up() {{
    kill -KILL -1
    wait 2>/dev/null
    stop_tracing
    for disk in /sys/kernel/config/nullb/*/; do
        [ ! -d "$disk" ] || {{ echo 0 >"$disk/power"; rmdir "$disk"; }}
    done
    unmount
    unload "$@"
    find /run /tmp /dev/shm -xdev -mindepth 1 -maxdepth 1 ! -name steadyio ! -name home \
        -exec rm -rf {{}} +
}}
in_turn() {{
    run=$1 folder=$2
    shift 2
    say "run $run begins"
    echo "steady-lab: run $run begins"
    limit_time
    mkdir -p {work}/"$folder"
    ( cd {work}/"$folder" && "run_$run" )
    status=$?
    clean_up "$@"
    say "run $run ends with status $status"
}}
"""

_RUN = """
run_{number}() {{
{set_up}
{command}
}}
in_turn {number} {folder} {unload}
"""


def init_script(console: Console, run: GuestRun, virtual_timeout_s: int) -> str:
    """Return the text of the init script for one command, with whose status the guest ends."""
    one = _ONE.format(
        work=GUEST_WORK,
        setup_failed=STATUS_SETUP_FAILED,
        set_up=run.set_up(),
        command=shlex.join(run.command),
        unload=run.unload,
    )
    return _head(console, virtual_timeout_s) + one


def init_script_in_turn(console: Console, runs: Sequence[GuestRun], virtual_timeout_s: int) -> str:
    """Return the text for several commands. A run that fails does not stop the next.

    Each finds its modules loaded afresh, and ends within the time limit. `results_in_turn()` reads
    what their output and the kernel's log say.
    """
    text = _head(console, virtual_timeout_s)
    text += _IN_TURN.format(work=GUEST_WORK, setup_failed=STATUS_SETUP_FAILED)
    for number, run in enumerate(runs):
        text += _RUN.format(
            number=number,
            set_up=run.set_up(["load"]),
            command=shlex.join(run.command),
            folder=shlex.quote(run.folder),
            unload=run.unload,
        )
    return f"{text}power_off 0\n"


def _head(console: Console, virtual_timeout_s: int) -> str:
    return _HEAD.format(
        setup_failed=STATUS_SETUP_FAILED,
        processor=PROCESSOR,
        terminal=console.terminal,
        finish=shlex.join(console.finish),
        idle=console.idle,
        places=" ".join(SHARED_PLACES),
        mounts="\n".join(f"need {shlex.join(mount)}" for mount in console.mounts),
        virtual_timeout_s=virtual_timeout_s,
    )
