# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels: one figure file for several figures that differ in a few values of the workload.

A figure may replace values of its workload (`set`), and leave out variants (`variants`) and points
of the sweep (`points`).
`[[panel]]` is shorthand. `expand` writes it out: each panel becomes a figure, named FIGURE-PANEL,
with the panel's OWN keys, and with the published values, checks and rivals of this panel. All later
code sees plain figures only.
"""

from __future__ import annotations

import copy
from typing import Any

from steady_lab.errors import SpecError
from steady_lab.toml_table import NAME_PATTERN, Table

Raw = dict[str, Any]
# Keys of the figure that a panel may override, and their kinds.
OWN = {
    "set": "a table",
    "device": "a name or a path",
    "points": "an array",
    "variants": "an array",
}
FOR_PANELS = ("published", "check", "rival")


def expand(raw: Raw, where: str) -> list[Raw]:
    """Return the plain figures that a parsed figure file stands for; raises SpecError."""
    if "panel" not in raw:
        return [raw]
    shared = {key: value for key, value in raw.items() if key != "panel"}
    table = Table(raw, where)
    table.text("name", NAME_PATTERN)
    table.text("title")
    panels = table.tables("panel")
    names = [panel.text("name", NAME_PATTERN) for panel in panels]
    if not names or len(set(names)) != len(names):
        raise SpecError(f"{where}: [[panel]]: needs one or more, with different names")
    return [_plain(shared, where, names, panel) for panel in panels]


def _plain(shared: Raw, where: str, names: list[str], panel: Table) -> Raw:
    own = panel.text("name")
    plain = copy.deepcopy(shared)
    plain["name"] += f"-{own}"
    plain["title"] += f": {panel.text('title')}"
    if panel.has("points"):
        points = panel.items("points", "a non-empty array of points of the workload's sweep")
        plain["plot"] = plain.get("plot", {}) | {"detail_point": points[0]}
    for key, allowed in OWN.items():
        if panel.has(key):
            plain[key] = panel.take(key, allowed)
    panel.close()
    for key in FOR_PANELS:
        tables = Table(plain, where).tables(key)
        plain[key] = [
            {k: v for k, v in item.items() if k != "panels"}
            for item, table in zip(plain.get(key, []), tables, strict=True)
            if _is_for(own, names, table)
        ]
    return plain


def _is_for(own: str, names: list[str], table: Table) -> bool:
    """Tell whether a table's `panels`, all of them if it has none, include this one."""
    if not table.has("panels"):
        return True
    allowed = "a non-empty array of panels out of " + ", ".join(names)
    chosen = table.items("panels", allowed)
    if any(name not in names for name in chosen):
        raise table.fail("panels", allowed)
    return own in chosen


def take_settings(table: Table) -> dict[str, int | str]:
    """Read a figure's `set`, empty if it has none; raises SpecError on a bad key or value."""
    if not table.has("set"):
        return {}
    found = table.take("set", "a table")
    if not isinstance(found, dict):
        raise table.fail("set", "a table [set]")
    settings = Table(found, f"{table.where}: [set]")
    for key in found:
        value = settings.take(key, "a whole number or a string")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise settings.fail(key, "a whole number or a string")
    return dict(found)


def take_variants(table: Table) -> list[str] | None:
    """Read a figure's `variants`, None if it has none: then all of the workload's count."""
    if not table.has("variants"):
        return None
    allowed = "a non-empty array of names of the workload's variants"
    chosen = table.items("variants", allowed)
    if not all(isinstance(name, str) for name in chosen) or len(set(chosen)) != len(chosen):
        raise table.fail("variants", allowed)
    return chosen


def take_points(table: Table) -> list[Any] | None:
    """Read a figure's `points`, None if it has none: then all of the workload's sweep count."""
    if not table.has("points"):
        return None
    chosen = table.items("points", "a non-empty array of points of the workload's sweep")
    return list(chosen)


def with_points(known: tuple[Any, ...], chosen: list[Any] | None, where: str) -> tuple[Any, ...]:
    """Return these of a workload's points, in the workload's order; raises SpecError."""
    if chosen is None:
        return known
    if any(point not in known for point in chosen) or len(set(chosen)) != len(chosen):
        have = ", ".join(map(str, known))
        raise SpecError(f"{where}: points = {chosen!r}: must be different ones of {have}")
    return tuple(point for point in known if point in chosen)


def with_variants(workload: Raw, chosen: list[str] | None, where: str) -> Raw:
    """Return a parsed workload with these variants only, in the workload's order."""
    if chosen is None:
        return workload
    known = [variant.get("name") for variant in workload.get("variant", [])]
    for name in chosen:
        if name not in known:
            have = ", ".join(map(str, known))
            raise SpecError(f"{where}: variants = {chosen!r}: must be some of {have}")
    return workload | {"variant": [v for v in workload["variant"] if v["name"] in chosen]}
