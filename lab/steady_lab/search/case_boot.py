# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot of the search. What does not hold is its outcome, not a failure of the sweep."""

from __future__ import annotations

import functools
import hashlib
import json
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from steady_lab.hashes import sha256_file
from steady_lab.paths import COMMAND
from steady_lab.root.steady_command import STEADY, STEADY_GUEST
from steady_lab.search.case import Case
from steady_lab.search.finding import Finding
from steady_lab.search.guest import CARD, WRITE_LOG, give, script
from steady_lab.search.judge import judge
from steady_lab.targets.target import BootError, BootRequest, BootResult, Target

TIMEOUT_S = 900.0


@dataclass
class CaseBoot:
    """`findings` are there once it has run."""

    case: Case
    target: Target
    request: BootRequest
    findings: list[Finding] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Its seed, which draws it unless it was shrunk."""
        return f"case {self.case.seed}"

    @property
    def replay(self) -> str:
        """The command that repeats it anywhere."""
        kernel = f"--kernel {self.target.release}"
        return f"{COMMAND} search {kernel} --replay {shlex.quote(self.case.line())}"

    @functools.cached_property
    def key(self) -> str:
        """The hash of case, kernel, modules and steady."""
        self.prepare()  # the target reads the card's spec
        programs = [sha256_file(STEADY), sha256_file(STEADY_GUEST)]
        decides = [self.target.identity(self.request), *programs, self.case.line()]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def expected_wall_s(self) -> None:
        """Unknown."""
        return

    def prepare(self) -> None:
        """Write the card, the data and the tasks."""
        shutil.rmtree(self.request.work, ignore_errors=True)
        self.request.work.mkdir(parents=True)
        give(self.case, self.request.work)

    def keep(self, outcome: BootResult | BootError) -> None:
        """Judge it; the folder is kept only if something does not hold."""
        self.findings = judge(self.case, self.request.work, outcome)
        if not self.findings:
            shutil.rmtree(self.request.work)


def boot_of(case: Case, target: Target, work: Path) -> CaseBoot:
    """Return the boot of a case in a work folder."""
    return CaseBoot(
        case,
        target,
        BootRequest(
            command=["sh", "-c", script(case)],
            work=work,
            device=work / CARD,
            write_log=WRITE_LOG if case.cuts else None,
            random_seed=case.seed,
            timeout_s=TIMEOUT_S,
        ),
    )
