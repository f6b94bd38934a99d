# SPDX-License-Identifier: MIT OR Apache-2.0
"""Evaluate a kernel log, of any target: signs of a kernel bug, and the command's exit status."""

import re

from steady_lab.devices.kinds import KINDS
from steady_lab.targets.target import RunError

# What the kernel prints for WARN, BUG, Oops, lockdep, RCU, KASAN, hung tasks and the like, and an
# emulated device that failed. A line that matches makes a boot fail.
KERNEL_TROUBLE = re.compile(
    r"""
      \bWARNING:
    | \bBUG:
    | \bkernel\ BUG\ at
    | \bOops\b
    | Kernel\ panic
    | Unable\ to\ handle\ kernel
    | Segfault\ with\ no\ mm
    | INFO:\ task\ .*\ blocked\ for\ more\ than
    | INFO:\ (?:possible|inconsistent|rcu_\w+\ detected|rcu_\w+\ self-detected|trying\ to\ register)
    | possible\ (?:recursive|circular)\ locking
    | suspicious\ RCU\ usage
    | bad\ unlock\ balance
    | (?:held\ lock\ freed|lock\ held\ when\ returning)
    | (?:KASAN|UBSAN|KFENCE|ODEBUG):
    | refcount_t:
    | list_(?:add|del)\ corruption
    | kobject:.*(?:tried\ to|is\ not\ initialized)
    | cannot\ create\ duplicate\ filename
    | scheduling\ while\ atomic
    | sleeping\ function\ called\ from\ invalid\ context
    | Call\ Trace:
    | steady-lab:\ trouble:
    """,
    re.VERBOSE,
)
DEVICE_TROUBLE = re.compile("|".join(kind.trouble for kind in KINDS.values()))
# Reports that a fault-injection test provokes, each with its own "Call Trace".
INJECTED = re.compile(r"FAULT_INJECTION: forcing a failure")
# A report of lockdep about the lab's own architecture, not about what is tested: on fork and exec,
# UML 6.1 walks the memory map in force_flush_all() without a lock.
KNOWN_SITE = "force_flush_all+"
KNOWN_REPORT = re.compile(r"WARNING: suspicious RCU usage")
TRACE_LINE = re.compile(r"\[<[0-9a-f]+>\]")
EXIT_STATUS = re.compile(r"steady-lab: exit status (\d+)")


def refuse_trouble(log: str, where: str) -> None:
    """Raise RunError with the log from just before the first sign of trouble, if there is one."""
    trouble = find_trouble(log)
    if not trouble:
        return
    lines = log.splitlines()
    first = next((index for index, line in enumerate(lines) if find_trouble(line)), 0)
    excerpt = "\n".join(lines[max(0, first - 5) : first + 60])
    raise RunError(f"the kernel reported trouble: {trouble[0]}\n{excerpt}\n{where}")


def find_trouble(log: str) -> list[str]:
    """The lines of `log` that report a kernel bug, in order."""
    lines = log.splitlines()
    found = []
    injected = False
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if INJECTED.search(line):
            injected = True
        elif "Call Trace:" in line and injected:
            injected = False
        elif KNOWN_REPORT.search(line) and KNOWN_SITE in "".join(lines[index : _end(lines, index)]):
            index = _end(lines, index)
        elif KERNEL_TROUBLE.search(line) or DEVICE_TROUBLE.search(line):
            found.append(line.strip())
    return found


def _end(lines: list[str], start: int) -> int:
    """Where the report that starts before `start` ends: behind the last line of its trace."""
    index = start
    while index < len(lines) and "Call Trace:" not in lines[index]:
        index += 1
    index += 1
    while index < len(lines) and TRACE_LINE.search(lines[index]):
        index += 1
    return index


def find_exit_status(log: str) -> int | None:
    """The exit status that the guest's init reported, or None if it did not get that far."""
    match = EXIT_STATUS.search(log)
    return int(match.group(1)) if match else None
