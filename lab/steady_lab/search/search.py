# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draw cases until time or number is used up; shrink what does not hold, to a line that replays."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from steady_lab.figures.boot_board import BootBoard
from steady_lab.figures.executor import Executor
from steady_lab.progress import Progress
from steady_lab.search.case import Case, draw
from steady_lab.search.case_boot import CaseBoot, boot_of
from steady_lab.search.finding import Finding
from steady_lab.search.shrink import smaller
from steady_lab.targets.target import Target

# Cases begun at a time, for each that runs: the last of them leave few machines idle.
ROUND = 4


@dataclass(frozen=True)
class Found:
    """A case, shrunk, and its broken invariants."""

    case: Case
    findings: list[Finding]


@dataclass
class Search:
    """Cases on a target, by an executor, each in a folder of its own below `work`."""

    target: Target
    executor: Executor
    work: Path
    shrink_boots_max: int = 80

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    def run(self, first_seed: int, cases: int | None, seconds: float | None) -> Iterator[Found]:
        """Yield the findings, shrunk: of `cases` cases, or of the rounds begun in `seconds`."""
        start_s = time.monotonic()
        progress, done = Progress("search, cases", cases or 0), 0
        while (cases is None or done < cases) and not _over(start_s, seconds):
            count = min(ROUND * self.executor.jobs, cases - done if cases else sys.maxsize)
            drawn = (draw(first_seed + done + number) for number in range(count))
            for boot in self.boot(drawn):
                done += 1
                if boot.findings:
                    yield self.shrink(boot)
            progress.update(done)
        progress.finish(f"{done} cases from seed {first_seed} on")

    def boot(self, cases: Iterable[Case]) -> list[CaseBoot]:
        """Run cases, and return their boots with findings."""
        boots = [boot_of(case, self.target, self.work / f"{next(self._numbers)}") for case in cases]
        self.executor.run(boots, BootBoard(boots, self.executor.jobs, StringIO()))
        return boots

    def shrink(self, boot: CaseBoot) -> Found:
        """Return the smallest case that breaks the same invariant, as far as looked for."""
        kind, best, booted = boot.findings[0].kind, boot, 0
        candidates = smaller(best.case)
        while booted < self.shrink_boots_max:
            tried = self.boot(itertools.islice(candidates, self.executor.jobs))
            booted += len(tried)
            if not tried:
                break
            same = [one for one in tried if one.findings and one.findings[0].kind == kind]
            if same:
                best = same[0]
                candidates = smaller(best.case)
        return Found(best.case, best.findings)


def _over(start_s: float, seconds: float | None) -> bool:
    return seconds is not None and time.monotonic() - start_s >= seconds
