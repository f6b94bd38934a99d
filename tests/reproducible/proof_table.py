# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of all runs, for the terminal and for docs/reference/reproducible.md."""

from __future__ import annotations

import re

from proof import RESULTS, Proof
from steady_lab.pages.marked_part import with_part
from steady_lab.paths import PROJECT

PAGE = PROJECT / "docs" / "reference" / "reproducible.md"
COMMAND = "tests/reproducible/other_systems table --write"
DIGITS = 12


def differences(here: Proof, other: Proof) -> list[str]:
    """Which files of the other run are not those of the run here."""
    wrong = [name for name in RESULTS if other.facts[name] != here.facts[name]]
    return wrong + [name for name, found in other.built.items() if found != here.built.get(name)]


def table(here: Proof, others: list[Proof]) -> str:
    """All runs as Markdown: the hashes of the run here, then how each other one compares."""
    hashes = {name: here.facts[name] for name in RESULTS} | here.built
    lines = [f"Commit {here.facts['commit']}:", ""]
    lines += ["```", *(f"{value}  {name}" for name, value in hashes.items()), "```", ""]
    lines += ["| Where | System | Processor | AVX2 | Host kernel | Results | Built there |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [_row(here, proof) for proof in (here, *others)]
    return "\n".join(lines) + "\n"


def _row(here: Proof, proof: Proof) -> str:
    facts = proof.facts
    system = re.sub(r" GNU/Linux| \(.*\)", "", facts["system"])
    # The text after the numbers names the builder of the host's kernel, not the kernel.
    kernel = facts["kernel"].partition("-")[0]
    cells = [proof.where, system, facts["processor"], facts["avx2"], kernel]
    results = {name: facts[name] for name in RESULTS}
    if proof is here:
        cells += ["above", "above"]
    else:
        cells += [_verdict(results, here.facts), _verdict(proof.built, here.built)]
    return f"| {' | '.join(cells)} |"


def _verdict(found: dict[str, str], wanted: dict[str, str]) -> str:
    if not found:
        return "nothing"
    wrong = [f"{name} {value[:DIGITS]}" for name, value in found.items() if wanted[name] != value]
    return f"DIFFERS: {', '.join(wrong)}" if wrong else f"same ({len(found)} files)"


def write_page(text: str) -> None:
    """Put the table between its markers in the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_part(page, "proof", COMMAND, text), encoding="utf-8")
