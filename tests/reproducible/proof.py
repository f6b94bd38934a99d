# SPDX-License-Identifier: MIT OR Apache-2.0
"""What one run of the small figure said of itself, and where it is kept between commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steady_lab.devices.kinds import MODULES
from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.kernels.build import build_kernel
from steady_lab.kernels.host import build_preload
from steady_lab.kernels.modules import build_modules
from steady_lab.kernels.source import find_source
from steady_lab.paths import BUILD, PROJECT

KEPT = BUILD / "proof"
HERE = "here"
RESULTS = ("tiny.csv", "tiny.json")
SCRIPT = "tests/reproducible/tiny_figure.sh"


@dataclass(frozen=True)
class Proof:
    """One run: the output of tiny_figure.sh, and the hashes of its builds."""

    name: str
    where: str
    facts: dict[str, str]
    built: dict[str, str] = field(default_factory=dict)

    def keep(self) -> None:
        """Write it into build/proof, in place of an earlier one of that name."""
        KEPT.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1) + "\n"
        (KEPT / f"{self.name}.json").write_text(text, encoding="utf-8")


def kept_proofs() -> list[Proof]:
    """All that is kept, the run on this machine first; raises LabError if there is none."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(KEPT.glob("*.json"))]
    proofs = [Proof(**json.loads(text)) for text in texts]
    if not any(proof.name == HERE for proof in proofs):
        raise LabError(f"{KEPT} holds no run on this machine: prove something first")
    return sorted(proofs, key=lambda proof: proof.name != HERE)


def facts_in(lines: Iterable[str]) -> dict[str, str]:
    """The facts in the lines of tiny_figure.sh."""
    found = (re.search(r"proof: (\S+) (.*)", line) for line in lines)
    return {match[1]: match[2].strip() for match in found if match}


def complete(facts: dict[str, str], log: Path) -> dict[str, str]:
    """Return the facts; raises LabError unless the results are among them."""
    if not all(name in facts for name in RESULTS):
        raise LabError(f"the figure did not run to its end there, see {log}")
    return facts


def watch(command: Sequence[str], log: Path, timeout_s: float) -> dict[str, str]:
    """Run a command to its end, its output into `log`; return the facts in it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise LabError(f"not done after {timeout_s:.0f} s, see {log}") from None
        finally:
            process.kill()
            process.wait()
    return facts_in(log.read_text(encoding="utf-8", errors="replace").splitlines())


def run_here() -> Proof:
    """Run the figure on this machine again; also builds what the other runs take from here."""
    print("running the figure on this machine, to compare with", file=sys.stderr)
    kernel = build_kernel(find_source())
    files = [kernel.linux, build_preload(), BUILD / "bin" / "steady-guest"]
    files += build_modules(kernel, MODULES).values()
    if not files[2].is_file():
        raise LabError(f"{files[2]} is missing: run build/bin/steady-lab root steady-guest")
    log = KEPT / "here.log"
    with tempfile.TemporaryDirectory(prefix="steadyio-proof-") as results:
        facts = complete(watch([SCRIPT, sys.executable, results], log, timeout_s=900), log)
    facts["commit"] = _commit()
    proof = Proof(HERE, "this machine", facts, {file.name: sha256_file(file) for file in files})
    proof.keep()
    return proof


def _commit() -> str:
    """What the hashes belong to: a later commit may build other bytes, the same everywhere."""
    words = ["git", "describe", "--always", "--abbrev=10", "--dirty"]
    return subprocess.run(words, cwd=PROJECT, capture_output=True, text=True).stdout.strip()
