# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's view of a workload: its name, seed, variants and sweep points.

`steady bench` owns the format and checks the rest of it; the lab only plans one boot per
variant, and labels what comes back. The spec of an application (docs/spec/application-1.md) or of
a recording (docs/spec/recording-spec-1.md) stands in for a workload; these are the lab's own
formats, so they are checked here in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steady_lab.errors import LabError, SpecError
from steady_lab.figures.application import Application, take_application
from steady_lab.figures.recording import (
    CARD,
    FOLDERS,
    Recording,
    take_arguments,
    take_recording,
)
from steady_lab.root.steady_command import steady_json
from steady_lab.toml_table import NAME_PATTERN, Point, Table, load_toml

WORKLOAD_SCHEMA = "steadyio.workload/1"
APPLICATION_SCHEMA = "steadyio.application/1"
RECORDING_SCHEMA = "steadyio.recording-spec/1"
SET_TABLES = ("length", "application", "source", "background")
SEED_MAX = 2**63 - 1
RECIPE_PATTERN = r"[A-Za-z0-9-]{1,64}"  # `steady record` knows which there are


@dataclass(frozen=True)
class Variant:
    """One setting of the device's knobs, or one recipe of a recording; a line of the figure."""

    name: str
    title: str
    is_chardisk: bool = False  # its jobs use the card's /dev/chardiskN
    knobs: dict[str, int | str] = field(default_factory=dict)  # of an application only
    recipe: str = ""  # of a recording only, as are the next two
    arguments: tuple[str, ...] = ()
    place: str = CARD


@dataclass(frozen=True)
class Workload:
    """A workload file as the lab sees it; `points` is (None,) without a sweep."""

    raw: dict[str, Any]
    name: str
    seed: int
    variants: tuple[Variant, ...]
    sweep_key: str | None
    points: tuple[Point, ...]
    application: Application | None = None  # what runs instead of jobs
    recording: Recording | None = None

    def variant(self, name: str) -> Variant:
        """Return a variant of this workload."""
        return next(variant for variant in self.variants if variant.name == name)

    def title_of(self, variant: str) -> str:
        """Return the title of a variant of this workload."""
        return self.variant(variant).title


def read_workload(path: Path, settings: dict[str, int | str], where: str) -> dict[str, Any]:
    """Return a parsed workload with values replaced; `where` starts the text of a SpecError.

    `steady bench` replaces and checks what its own format has; the lab does it for its own two.
    """
    raw = load_toml(path)
    if raw.get("schema") != WORKLOAD_SCHEMA:
        for key, value in settings.items():
            _put(raw, key, value, where)
        return raw
    chosen = (f"--set={key}={value}" for key, value in settings.items())
    try:
        return steady_json("bench", str(path), *chosen, "--print-spec")
    except LabError as error:
        raise SpecError(f"{where}: {error}") from error


def _put(raw: dict[str, Any], key: str, value: int | str, where: str) -> None:
    table, _, last = key.partition(".")
    place = raw.get(table) if table in SET_TABLES else None
    if not isinstance(place, dict) or last not in place:
        raise SpecError(
            f"{where}: [set] {key} = {value!r}: the key must be one of the workload's "
            f"{', '.join(f'{table}.KEY' for table in SET_TABLES)}"
        )
    place[last] = value


def parse_workload(raw: dict[str, Any], where: str) -> Workload:
    """Take the lab's part of a parsed workload; `where` starts the text of a SpecError."""
    table = Table(raw, where)
    schema = table.choice("schema", (WORKLOAD_SCHEMA, APPLICATION_SCHEMA, RECORDING_SCHEMA))
    sweep_key, points = _sweep(table) if schema == WORKLOAD_SCHEMA else (None, (None,))
    workload = Workload(
        raw=raw,
        name=table.text("name", NAME_PATTERN),
        seed=0 if schema == RECORDING_SCHEMA else table.integer("seed", 0, SEED_MAX),
        variants=_variants(table, schema),
        sweep_key=sweep_key,
        points=points,
        application=take_application(table) if schema == APPLICATION_SCHEMA else None,
        recording=take_recording(table) if schema == RECORDING_SCHEMA else None,
    )
    if schema != WORKLOAD_SCHEMA:
        table.text("title")
        table.close()
    return workload


def _variants(table: Table, schema: str) -> tuple[Variant, ...]:
    variants = tuple(_variant(item, schema) for item in table.tables("variant"))
    if not variants:
        raise SpecError(
            f"{table.where}: variant is missing: must be one or more tables [[variant]]"
        )
    names = [variant.name for variant in variants]
    if len(set(names)) != len(names):
        raise SpecError(f"{table.where}: variant: names must differ, got {', '.join(names)}")
    return variants


def _variant(table: Table, schema: str) -> Variant:
    name = table.text("name", NAME_PATTERN)
    variant = Variant(name, table.text("title", default=name))
    if schema == WORKLOAD_SCHEMA:
        return replace(variant, is_chardisk=table.has("chardisk") and table.flag("chardisk"))
    if schema == APPLICATION_SCHEMA:
        variant = replace(variant, knobs=_knobs(table))
    else:
        recipe = table.text("recipe", RECIPE_PATTERN)
        place = table.choice("place", tuple(FOLDERS), default=CARD)
        variant = replace(variant, recipe=recipe, arguments=take_arguments(table), place=place)
    table.close()
    return variant


def _knobs(table: Table) -> dict[str, int | str]:
    """Read the knobs of an application's variant; `steady with` checks the keys."""
    allowed = "a table of whole numbers and strings"
    knobs = table.take("knobs", allowed)
    values = knobs.values() if isinstance(knobs, dict) else [None]
    if not all(isinstance(v, int | str) and not isinstance(v, bool) for v in values):
        raise table.fail("knobs", allowed)
    return dict(knobs)


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
