# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the lab needs to know of a workload: its name, seed, variants and sweep points.

`steady bench` owns the format and checks the rest of it; the lab only plans one boot per
variant, and labels what comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steady_lab.device_spec import SpecError
from steady_lab.toml_table import NAME_PATTERN, Point, Table

WORKLOAD_SCHEMA = "steadyio.workload/1"
SEED_MAX = 2**63 - 1


@dataclass(frozen=True)
class Variant:
    """One setting of the device's knobs; a line of the figure."""

    name: str
    title: str


@dataclass(frozen=True)
class Workload:
    """A workload file as the lab sees it; `points` is (None,) without a sweep."""

    raw: dict[str, Any]
    name: str
    seed: int
    variants: tuple[Variant, ...]
    sweep_key: str | None
    points: tuple[Point, ...]

    def title_of(self, variant: str) -> str:
        """Return the title of a variant of this workload."""
        return next(v.title for v in self.variants if v.name == variant)


def parse_workload(raw: dict[str, Any], where: str) -> Workload:
    """Take what the lab needs from a parsed workload; `where` starts the text of a SpecError."""
    table = Table(raw, where)
    table.choice("schema", (WORKLOAD_SCHEMA,))
    variants = tuple(_variant(item) for item in table.tables("variant"))
    if not variants:
        raise SpecError(f"{where}: variant is missing: must be one or more tables [[variant]]")
    names = [variant.name for variant in variants]
    if len(set(names)) != len(names):
        raise SpecError(f"{where}: variant: names must differ, got {', '.join(names)}")
    sweep_key, points = _sweep(table)
    return Workload(
        raw=raw,
        name=table.text("name", NAME_PATTERN),
        seed=table.integer("seed", 0, SEED_MAX),
        variants=variants,
        sweep_key=sweep_key,
        points=points,
    )


def _variant(table: Table) -> Variant:
    name = table.text("name", NAME_PATTERN)
    return Variant(name, table.text("title", default=name))


def _sweep(table: Table) -> tuple[str | None, tuple[Point, ...]]:
    if not table.has("sweep"):
        return None, (None,)
    sweep = table.table("sweep")
    allowed = "a non-empty array of different numbers or strings"
    values = sweep.items("values", allowed)
    plain = all(isinstance(v, int | float | str) and not isinstance(v, bool) for v in values)
    if not plain or len(set(values)) != len(values):
        raise sweep.fail("values", allowed)
    return sweep.text("key"), tuple(values)
