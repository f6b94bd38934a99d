# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device specs: experiments/devices/NAME.toml, or a profile of `steady probe` -> parameters of an
emulated device.

Keys that a spec omits have the default of its kind, and every parameter is passed on, so the
module's own defaults never matter. docs/devices.md lists the
keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steady_lab.devices.kind import Kind
from steady_lab.devices.kinds import DEFAULT, KINDS
from steady_lab.errors import SpecError
from steady_lab.paths import GUEST_WORK
from steady_lab.toml_table import Table, load_toml

SCHEMA = "steadyio.device/1"
# Written by `steady probe`: a spec of a card, and the measurements behind it.
PROFILE_SCHEMA = "steadyio.profile/1"
_PROFILE_TABLES = ("seen", "full", "deleting", "verified", "claims", "limits", "probe")


@dataclass(frozen=True)
class DeviceSpec:
    """A checked spec. `values` maps module parameters to numbers, defaults filled in.

    `more` are parameters that are no numbers. `write_log`, which no spec gives, is a file in the
    work folder for the device's write log.
    """

    name: str
    title: str
    source: str
    kind: Kind
    values: dict[str, int]
    more: tuple[str, ...]
    backing_file: str | None
    raw: dict[str, Any] = field(repr=False)
    write_log: str | None = None

    def module_params(self) -> list[str]:
        """`key=value` words for insmod, always in the same order."""
        params = [f"{number.param}={self.values[number.param]}" for number in self.kind.numbers]
        params += self.more
        if self.backing_file is not None:
            params.append(f"path={GUEST_WORK}/{self.backing_file}")
        if self.write_log is not None:
            params.append(f"write_log={GUEST_WORK}/{self.write_log}")
        return params


def load_device(path: Path) -> DeviceSpec:
    """Reads and checks a device spec. Raises SpecError."""
    return parse_device(load_toml(path), str(path))


def parse_device(raw: dict[str, Any], where: str) -> DeviceSpec:
    """Check the TOML of a device spec; `where` starts the text of a SpecError."""
    spec = Table(raw, where)
    if spec.choice("schema", (SCHEMA, PROFILE_SCHEMA)) == PROFILE_SCHEMA:
        for name in _PROFILE_TABLES:
            spec.table(name, {})
        if not spec.has("write"):
            raise SpecError(f"{where}: [write] is missing: add it with `steady probe --write`")
    kind = KINDS[spec.choice("kind", tuple(KINDS), DEFAULT)]
    names = dict.fromkeys(number.table for number in kind.numbers)
    tables = {name: spec.table(name, {}) for name in names}
    values = {
        number.param: tables[number.table].integer(
            number.key, number.low, number.high, number.default
        )
        for number in kind.numbers
    }
    device = DeviceSpec(
        name=spec.text("name", r"[a-z0-9][a-z0-9-]*", allowed="lower case letters, digits and '-'"),
        title=spec.text("title"),
        source=spec.text("source"),
        kind=kind,
        values=values,
        more=tuple(kind.more(spec, tables, values)),
        backing_file=_backing_file(spec.table("backing", {})),
        raw=raw,
    )
    for table in (*tables.values(), spec):
        table.close()
    return device


def _backing_file(backing: Table) -> str | None:
    kind = backing.choice("kind", ("memory", "file"), "memory")
    if kind == "memory" and backing.has("file"):
        raise SpecError(f"{backing.where}: file: only with kind = 'file'")
    file = None
    if kind == "file":
        allowed = "a file name in the work folder (letters, digits, '_', '-', '.')"
        file = backing.text("file", r"[A-Za-z0-9_][A-Za-z0-9_.-]*", allowed=allowed)
    backing.close()
    return file
