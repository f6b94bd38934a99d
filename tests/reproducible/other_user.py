# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the small figure as an ordinary user, in another folder than the clone's."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from clone import cache_places, copy_clone, copy_steady, modules_and_preload, need_root
from proof import KEPT, SCRIPT, Proof, complete, watch
from steady_lab.hashes import sha256_file

USER = "65534"  # nobody
PLACE = "/mnt/steadyio"
TIMEOUT_S = 900


def prove_user() -> Proof:
    """Run the figure as nobody; modules and the preload library are rebuilt."""
    need_root("user")
    log = KEPT / "user.log"
    with tempfile.TemporaryDirectory(prefix="steadyio-proof-") as name:
        clone = Path(name) / "clone"
        copy_clone(clone)
        copy_steady(clone)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", clone], check=True)
        print(f"running the figure as user {USER}; the log is {log}", file=sys.stderr)
        facts = complete(watch(_command(clone), log, TIMEOUT_S), log)
        built = {file.name: sha256_file(file) for file in modules_and_preload(clone)}
    return Proof("user", "ordinary user, other folder", facts, built)


def _command(clone: Path) -> list[str]:
    """The figure, run by nobody, with the libraries and the cache of this user."""
    python = f"/mnt/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    libraries = f"{PLACE}/lab:/mnt/libraries"
    words = ["bwrap", "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/"]
    words += ["--proc", "/proc", "--tmpfs", "/mnt", "--bind", str(clone), PLACE]
    # Both may be in a folder that only this user may enter.
    words += ["--ro-bind", sys.base_prefix, "/mnt/python"]
    words += ["--ro-bind", sysconfig.get_path("purelib"), "/mnt/libraries"]
    words += cache_places("/mnt/cache")
    words += ["--clearenv", "--setenv", "PATH", os.defpath, "--setenv", "HOME", PLACE]
    words += ["--setenv", "STEADYIO_CACHE", "/mnt/cache", "--setenv", "PYTHONPATH", libraries]
    words += ["--cap-add", "ALL", "--chdir", PLACE]
    words += ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*words, SCRIPT, python, f"{PLACE}/build/proof"]
