# SPDX-License-Identifier: MIT OR Apache-2.0
"""A store on an emulated card, cut anywhere: it holds what it held before a change, or after it.

One boot changes a store with `steady store`, with the card's write log on. For each cut the card is
rebuilt from the log, and `steady store check` reads it on the host.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernel_scripts import build_helpers
from releases import RELEASES
from steady_lab.devices.power_cut.card import Cut, CutCard
from steady_lab.devices.power_cut.plan import plan_cuts
from steady_lab.devices.power_cut.write_log import WriteLog
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CUTS = int(os.environ.get("STEADY_CUTS", "40"))
CHANGES = 40
BYTES_MAX = 300_000
DEVICE = PROJECT / "experiments" / "devices" / "test-cut.toml"
STEADY = BUILD / "bin" / "steady"

State = dict[int, bytes]


@dataclass(frozen=True)
class Change:
    """A line of the file changes, and the store after it."""

    line: str
    state: State


def pattern(text: str, length: int) -> bytes:
    """What pattern() of tests/kernel/lib.sh writes."""
    lines = (f"{text} {number:09}\n" for number in range(1, length // 11 + 2))
    return "".join(lines).encode()[:length]


def changes() -> list[Change]:
    """Random, the same each time; contents never exceed those that an extent was made for."""
    chance, state, rooms = random.Random(16), State(), dict[int, int]()
    made = []
    for number in range(CHANGES):
        extent = chance.randint(1, 4)
        if extent in state and chance.random() < 0.2:
            del state[extent]
            del rooms[extent]
            line = f"delete {extent}"
        else:
            length = chance.randint(1, rooms.get(extent, BYTES_MAX))
            rooms.setdefault(extent, length)
            text = f"change-{number}"
            state[extent] = pattern(text, length)
            line = f"put {extent} {text} {length}"
        made.append(Change(line, dict(state)))
    return made


@dataclass(frozen=True)
class Run:
    """A log, and when each change began and ended."""

    log: WriteLog
    changes: list[Change]
    marks: list[tuple[int, int]]

    def allowed(self, time_ns: int) -> list[State]:
        """The store after the last change that had ended, and after one that had begun."""
        ended = sum(end_ns <= time_ns for _, end_ns in self.marks)
        begun = sum(begin_ns <= time_ns for begin_ns, _ in self.marks)
        states = [State(), *(change.state for change in self.changes)]
        return states[ended : begun + 1]

    def cuts(self, seed: int) -> list[Cut]:
        return plan_cuts(self.log, CUTS, seed, self.marks[0][0], self.marks[-1][1])


def run(work: Path, release: str = "6.1", **environment: str) -> Run:
    build_helpers(PROJECT / "tests" / "store")
    made = changes()
    (work / "changes").write_text("".join(change.line + "\n" for change in made))
    result = uml(release, "base").boot(
        BootRequest(
            command=["sh", f"{GUEST_PROJECT}/tests/store/changes.sh"],
            work=work,
            device=DEVICE,
            write_log="card.log",
            environment={
                "STEADY_TESTS": f"{GUEST_PROJECT}/tests/kernel",
                "STEADY_TESTS_BIN": f"{GUEST_PROJECT}/build/tests/bin",
                "STEADY": f"{GUEST_PROJECT}/build/bin/steady",
                **environment,
            },
            timeout_s=600,
        )
    )
    assert result.exit_status == 0, result.output[-3000:]
    lines = (line.split() for line in (work / "marks").read_text().splitlines())
    marks = [(int(begin_ns), int(end_ns)) for begin_ns, end_ns in lines]
    assert len(marks) == CHANGES
    return Run(WriteLog(work / "card.log"), made, marks)


def found(image: Path) -> State | str:
    """The contents of a store, or the error."""
    command = [str(STEADY), "store", "check", str(image), "--json"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    if output.returncode != 0:
        return output.stderr.strip() or output.stdout
    data = image.read_bytes()
    extents = json.loads(output.stdout)["extents"]
    return {it["id"]: data[it["start"] : it["start"] + it["valid_bytes"]] for it in extents}


def faults(work: Path, ran: Run, cuts: Iterable[Cut]) -> list[str]:
    """A line for each cut after which the store is neither as before nor as after."""
    card, image, wrong = CutCard(ran.log, work / "stable.img"), work / "cut.img", []
    for cut in cuts:
        card.write_cut(cut, image)
        left = found(image)
        if left not in ran.allowed(cut.time_ns):
            text = left if isinstance(left, str) else f"holds {sorted(left)}"
            replay = f"--cut {cut.time_ns}:{cut.fate}:{cut.seed} --image FILE"
            wrong.append(f"{text} (steady-lab power-cut {ran.log.path} {replay})")
    card.close()
    image.unlink()
    return wrong


@pytest.mark.parametrize("release", ["6.1"] if CUTS < 100 else RELEASES)
def test_a_store_is_as_before_or_as_after(release: str, work: Path) -> None:
    ran = run(work, release)
    cuts = ran.cuts(seed=1)
    assert len(cuts) == CUTS
    assert faults(work, ran, cuts) == []


def test_a_kernel_that_does_not_flush_is_caught(work: Path) -> None:
    """The proof that the test above can fail."""
    ran = run(work, STORE_NO_FLUSH="1")
    wrong = faults(work, ran, ran.cuts(seed=1))
    print(f"{len(wrong)} of {CUTS}: {wrong[:2]}")
    assert len(wrong) > CUTS // 10
