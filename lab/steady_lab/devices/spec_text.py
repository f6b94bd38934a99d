# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes a device spec as TOML, as experiments/devices/ has it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

from steady_lab.devices.kind import Kind
from steady_lab.devices.spec import SCHEMA, parse_device


def spec_text(
    kind: Kind,
    texts: Mapping[str, str],
    product: str,
    values: Mapping[str, int],
    comments: Sequence[str],
) -> str:
    """Return a spec. `texts` has its name, title and source, `values` its numbers by parameter.

    Numbers that are the default of the kind are left out. Raises SpecError.
    """
    lines = [
        *(f"# {' '.join(comment.split())}" for comment in comments),
        f"schema = {_quoted(SCHEMA)}",
    ]
    lines += [f"{key} = {_quoted(text)}" for key, text in texts.items()]
    for table in dict.fromkeys(number.table for number in kind.numbers):
        given = [f"product = {_quoted(product)}"] if table == "card" else []
        given += [
            f"{number.key} = {values[number.param]}"
            for number in kind.numbers
            if number.table == table and values[number.param] != number.default
        ]
        if given:
            lines += ["", f"[{table}]", *given]
    text = "\n".join(lines) + "\n"
    parse_device(tomllib.loads(text), f"{texts['name']}, as fitted")
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
