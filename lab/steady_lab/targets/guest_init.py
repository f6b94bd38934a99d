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


_TEMPLATE = """#!/bin/sh
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
wait_for_node() {{
    for _ in $(seq 1000); do
        {node_is_there} && return
        sleep 0.01
    done
    return 1
}}
teardown() {{
    for scheduler in /sys/block/*/queue/scheduler; do
        names=
        read -r names 2>/dev/null <"$scheduler"
        case $names in *'[k2]'*) echo none >"$scheduler" ;; esac
    done
    for module in {unload}; do
        rmmod "$module" || say "trouble: rmmod $module failed after the command had ended"
    done
}}

for place in /run /tmp /dev/shm; do
    [ -d $place ] || mkdir $place
    need mount -t tmpfs tmpfs $place
done
need mount -t debugfs debugfs /sys/kernel/debug
need mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p {places} "$HOME"
{mounts}
cd {work} || power_off {setup_failed}
( sleep {virtual_timeout_s}; say "trouble: still running after {virtual_timeout_s} virtual seconds"
  echo o >/proc/sysrq-trigger ) &
{insmods}
{exports}
{wait_for_node}
{command}
status=$?
cd /
[ $status -ne 0 ] || teardown
power_off $status
"""


def init_script(
    console: Console,
    *,
    command: Sequence[str],
    loads: Sequence[ModuleLoad],
    node: str,
    node_comes_early: bool = False,
    environment: Mapping[str, str],
    virtual_timeout_s: int,
) -> str:
    """The text of the init script for one boot.

    `node_comes_early`: when the kernel makes it, the disk cannot be opened yet.
    """
    insmods = [
        f"need {shlex.join([*load.program, str(load.path), *load.params])}" for load in loads
    ]
    exports = [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]
    unload = [load.path.stem for load in reversed(loads) if load.unload]
    return _TEMPLATE.format(
        setup_failed=STATUS_SETUP_FAILED,
        processor=PROCESSOR,
        terminal=console.terminal,
        finish=shlex.join(console.finish),
        idle=console.idle,
        work=GUEST_WORK,
        places=" ".join(SHARED_PLACES),
        mounts="\n".join(f"need {shlex.join(mount)}" for mount in console.mounts),
        virtual_timeout_s=virtual_timeout_s,
        insmods="\n".join(insmods),
        exports="\n".join(exports),
        node_is_there='true 2>/dev/null <"$1"' if node_comes_early else '[ -b "$1" ]',
        wait_for_node=f"need wait_for_node {node}" if node else ":",
        unload=" ".join(unload) or '""',
        command=shlex.join(command),
    )
