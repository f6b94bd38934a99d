# SPDX-License-Identifier: MIT OR Apache-2.0
"""A case: all that one boot of the search does, as one line of JSON that replays anywhere."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, fields
from typing import Any

from steady_lab.errors import LabError
from steady_lab.search.recording import random_disk, random_recording
from steady_lab.search.sets import SETTINGS, random_card, random_tasks, seconds

FORMAT = 1
FATES = ("lost", "kept", "prefix", "newest", "random")
WRITERS_MAX = 3
BLOCKS_MAX = 24
# Of one writer, so that its data travels with its boot (sweeps/dask_executor.py).
WRITTEN_KIB_MAX = 1024
CUTS_MAX = 8


@dataclass(frozen=True)
class Case:
    """The writes of a case, and the real-time tasks that follow on the same card; or a recording.

    `writers` each write `blocks` synced blocks of `kib`, of a class of I/O; `cuts` take the power
    at a share of the write log's time, in 1/1000. Only tests of the search have the other two:
    `profile` is the card's data for the bound, if it differs from the card; `planted` is a command
    before contents are read back, or before the recording.
    """

    seed: int
    card: dict[str, Any]
    knobs: dict[str, int]
    writers: tuple[dict[str, Any], ...] = ()
    cuts: tuple[dict[str, Any], ...] = ()
    tasks: tuple[dict[str, Any], ...] = ()
    background: dict[str, Any] | None = None
    recording: dict[str, int] | None = None
    seconds: int = 1
    profile: dict[str, Any] | None = None
    planted: str = ""

    def line(self) -> str:
        """Return it as JSON, without empty fields."""
        given = {name: value for name, value in asdict(self).items() if value}
        return json.dumps({"case": FORMAT, **given}, separators=(",", ":"))


def parse(line: str) -> Case:
    """Read a line; raises LabError."""
    try:
        given = json.loads(line)
        version = given.pop("case", None)
        unknown = set(given) - {field.name for field in fields(Case)}
    except (ValueError, TypeError, AttributeError) as error:
        raise LabError(f"--replay {line[:60]}: must be a line that `search` printed") from error
    if version != FORMAT or unknown:
        raise LabError(
            f"--replay: case {version}, unknown {sorted(unknown)}: must be case {FORMAT}, "
            "as this lab's `search` prints it"
        )
    lists = {name: tuple(given.get(name, ())) for name in ("writers", "cuts", "tasks")}
    try:
        return Case(**{"seed": 0, **given, **lists})
    except TypeError as error:
        raise LabError(f"--replay: {error}") from error


def draw(seed: int) -> Case:
    """Return the case of a seed: a bound's tasks, a recording, or writers with faults or cuts."""
    pick = random.Random(f"case {seed}")
    card = random_card(seed)
    kind = pick.random()
    if kind < 0.5:
        tasks, background, knobs = random_tasks(card, seed)
        lasts_s = seconds(tasks)
        return Case(seed, card, knobs, tasks=tuple(tasks), background=background, seconds=lasts_s)
    knobs = {name: pick.choice(values) for name, values in SETTINGS.items()}
    if kind < 0.75:
        random_disk(pick, card)
        return Case(seed, card, knobs, recording=random_recording(pick))
    if pick.random() < 0.3:
        card["fault"] = [{"on": "write", "outcome": "error", "ppm": pick.choice((1000, 50_000))}]
    count = 0 if "fault" in card else pick.randint(0, CUTS_MAX)
    cuts = (
        {"permille": pick.randint(0, 1000), "fate": pick.choice(FATES), "seed": pick.randint(0, 99)}
        for _ in range(count)
    )
    writers = (_writer(pick) for _ in range(pick.randint(1, WRITERS_MAX)))
    return Case(seed, card, knobs, writers=tuple(writers), cuts=tuple(cuts))


def _writer(pick: random.Random) -> dict[str, Any]:
    kib = pick.choice((4, 16, 64, 256))
    return {
        "class": pick.choice(("realtime", "best-effort", "idle")),
        "kib": kib,
        "blocks": pick.randint(1, min(BLOCKS_MAX, WRITTEN_KIB_MAX // kib)),
    }
