# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run several requests in one guest, one after the other, and judge each for itself.

This saves boots. `guest_init.init_script_in_turn()` marks in
the output and in the kernel's log where each run begins and ends.
"""

from __future__ import annotations

import re

from steady_lab.targets.kernel_log import find_trouble
from steady_lab.targets.target import BootError, BootResult

BEGINS = re.compile(r"steady-lab: run (\d+) begins\n")
ENDS = re.compile(r"steady-lab: run (\d+) ends with status (\d+)")


class VoidedError(BootError):
    """The run did not begin, or began in a guest that had reported trouble in an earlier one."""


def results_in_turn(output: str, log: str, count: int) -> list[BootResult | BootError]:
    """Return how each of `count` runs ended; `wall_s` of each is 0.

    After the first sign of trouble in the log the kernel's checks are partly off, so the runs
    behind it are void.
    """
    outputs, logs = _by_run(output), _by_run(log)
    results: list[BootResult | BootError] = []
    for number in range(count):
        said = logs.get(number, "")
        trouble, end = find_trouble(said), ENDS.search(said)
        if results and isinstance(results[-1], BootError):
            results.append(VoidedError("the guest failed in an earlier run"))
        elif trouble:
            results.append(BootError(f"the kernel reported trouble: {trouble[0]}\n{said}"))
        elif not end:
            results.append(BootError(f"the guest ended\n{outputs.get(number, '')}\n{said}"))
        else:
            results.append(BootResult(int(end[2]), outputs.get(number, ""), said, 0.0))
    return results


def _by_run(text: str) -> dict[int, str]:
    """Return the text after each run's start."""
    begins = list(BEGINS.finditer(text))
    ends = [*(match.start() for match in begins), len(text)][1:]
    return {int(match[1]): text[match.end() : end] for match, end in zip(begins, ends, strict=True)}
