# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fit emulated cards to published transfer times: one request at a time, from queue to interrupt.

A request that lies on one unit takes base + jump + size x (per_kib + bus), so one published time
per direction gives `base_ns`, and all else is assumed. Times are in us.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from steady_lab.devices.spec import DeviceSpec, load_device
from steady_lab.errors import SpecError
from steady_lab.paths import PROJECT
from steady_lab.toml_table import NAME_PATTERN, Table, load_toml

DEVICES = PROJECT / "experiments/devices"
TRANSFERS = DEVICES / "published/s5.toml"
SCHEMA = "steadyio.published-transfers/1"
OPS = ("read", "write")
ACCESSES = ("random", "sequential")
KIB_MAX = 512  # the host's largest request
US_MAX = 1_000_000


@dataclass(frozen=True)
class Transfer:
    """One published time."""

    where: str
    device: str  # a name in experiments/devices
    op: str
    access: str
    kib: int
    us: float
    left_out: str  # why it is not fitted; empty: it is


def load_transfers(path: Path = TRANSFERS) -> list[Transfer]:
    """Read published times. Raises SpecError."""
    table = Table(load_toml(path), str(path))
    table.choice("schema", (SCHEMA,))
    table.tables("board")  # for people
    transfers = [_transfer(item) for item in table.tables("transfer")]
    table.close()
    return transfers


def _transfer(table: Table) -> Transfer:
    transfer = Transfer(
        where=table.text("where"),
        device=table.text("device", NAME_PATTERN),
        op=table.choice("op", OPS),
        access=table.choice("access", ACCESSES),
        kib=table.integer("kib", 1, KIB_MAX),
        us=table.number("us", 0, US_MAX),
        left_out=table.text("left_out", default=""),
    )
    table.close()
    return transfer


def cards_of(transfers: list[Transfer]) -> list[DeviceSpec]:
    """Read the specs of the cards that the times are of, each once. Raises SpecError."""
    names = dict.fromkeys(transfer.device for transfer in transfers)
    return [load_device(DEVICES / f"{name}.toml") for name in names]


def transfer_us(spec: DeviceSpec, op: str, kib: int) -> float:
    """Return the time of a single request that does not continue the last one.

    Raises SpecError if it would be cut along stripes, which this does not compute.
    """
    values = spec.values
    if values["units"] > 1 and kib > values["stripe_kib"]:
        raise SpecError(
            f"{spec.name}: stripe_kib = {values['stripe_kib']}: must be at least {kib}, so that "
            "the request is on one unit"
        )
    fixed_ns = values[f"{op}_base_ns"] + values[f"{op}_jump_ns"]
    return (fixed_ns + kib * (values[f"{op}_per_kib_ns"] + values["bus_per_kib_ns"])) / 1000


def fitted_base_ns(spec: DeviceSpec, op: str, transfers: list[Transfer]) -> int:
    """Return the `base_ns` with which the card takes the published times, on average."""
    own = [t for t in transfers if (t.device, t.op, t.left_out) == (spec.name, op, "")]
    too_short_us = mean(t.us - transfer_us(spec, op, t.kib) for t in own)
    return spec.values[f"{op}_base_ns"] + round(too_short_us * 1000)


def transfer_mismatches(spec: DeviceSpec, transfers: list[Transfer]) -> list[str]:
    """Return where the spec's values differ from the result of the fit."""
    return [
        f"{spec.name}: {op}.base_ns = {spec.values[f'{op}_base_ns']}, fitted {fitted}"
        for op in OPS
        if (fitted := fitted_base_ns(spec, op, transfers)) != spec.values[f"{op}_base_ns"]
    ]
