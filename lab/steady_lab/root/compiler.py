# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compile small C programs and libraries for what runs in the lab's root."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.root.lock import NATIVE
from steady_lab.root.root import build_root
from steady_lab.root.sandbox import Place, run_inside

SOURCE, TARGET = "/run/steadyio/source", "/run/steadyio/target"
INCLUDE, LIBRARIES = "/run/steadyio/include", "/run/steadyio/libraries"
# The name of a program's compiler, by Debian's name of the architecture.
COMPILERS = {
    NATIVE: "gcc",
    "arm64": "aarch64-linux-gnu-gcc",
    "armhf": "arm-linux-gnueabihf-gcc",
}


def compile_inside(
    sources: Sequence[Path],
    target: Path,
    flags: Sequence[str],
    include: Path | None = None,
    architecture: str = NATIVE,
    library: Path | None = None,
) -> None:
    """Compile sources of one folder into `target` at once; raises LabError if gcc refuses.

    `include` is a further folder of headers; `library`, a static one, is linked last.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # The folder is unique, as another process may be compiling the same program.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        places = [Place(sources[0].parent, SOURCE), Place(Path(folder), TARGET, writable=True)]
        command = [COMPILERS[architecture], *flags, "-o", f"{TARGET}/{target.name}"]
        if include:
            places.append(Place(include, INCLUDE))
            command.append(f"-I{INCLUDE}")
        command += [f"{SOURCE}/{source.name}" for source in sources]
        if library:
            places.append(Place(library.parent, LIBRARIES))
            # libsteadyio's needs the mathematical one on 32 bits.
            command += [f"{LIBRARIES}/{library.name}", "-lm"]
        done = run_inside(build_root(architecture).path, command, places)
        if done.returncode != 0:
            raise LabError(f"building {target.name} failed:\n{done.stderr[-2000:]}")
        Path(folder, target.name).replace(target)
