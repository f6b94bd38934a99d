# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the small figure in a minimal system of another kind, made by mmdebstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from clone import cache_places, copy_clone, copy_steady, modules_and_preload, need_root
from proof import KEPT, SCRIPT, Proof, complete, watch
from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.root.apt import debian_mirror

# What the lab needs of a system; with --from-scratch, scripts/setup installs it.
PACKAGES = "bubblewrap,python3,python3-venv,xz-utils,ca-certificates,debian-archive-keyring"
PLACE = "/home/proof/steadyio"
CACHE = "/home/proof/.cache/steadyio"
CERTIFICATES = "usr/local/share/ca-certificates"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "STEADYIO_DEBIAN_MIRROR")
TIMEOUT_S = {False: 1800, True: 7200}
# The lab's libraries, as scripts/setup installs them; all else comes from this machine's cache.
LIBRARIES = (
    "update-ca-certificates >/dev/null && python3 -m venv build/venv && "
    "build/venv/bin/pip install --quiet --require-hashes -r lab/requirements.lock"
)
EVERYTHING = "scripts/setup && build/bin/steady-lab kernel build"


def prove_system(suite: str, mirror: str | None, from_scratch: bool) -> Proof:
    """Run the figure in a suite of Debian, or of the mirror.

    `from_scratch`: with an empty cache and nothing installed, with the project's own commands.
    """
    need_root("system")
    if not shutil.which("mmdebstrap"):
        raise LabError("mmdebstrap is missing: apt install mmdebstrap")
    name = f"system-{suite}{'-from-scratch' if from_scratch else ''}"
    log, tree = KEPT / f"{name}.log", KEPT / "systems" / name
    try:
        _make_system(tree, suite, mirror or debian_mirror(), "" if from_scratch else PACKAGES)
        clone = tree / PLACE.lstrip("/")
        copy_clone(clone)
        if not from_scratch:
            copy_steady(clone)
        print(f"running the figure in {suite}; the log is {log}", file=sys.stderr)
        facts = complete(watch(_command(tree, from_scratch), log, TIMEOUT_S[from_scratch]), log)
        built = {file.name: sha256_file(file) for file in _built(tree, clone, from_scratch)}
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    where = "minimal system, empty cache" if from_scratch else "minimal system"
    return Proof(name, where, facts, built)


def _make_system(tree: Path, suite: str, mirror: str, packages: str) -> None:
    """Make it in an empty folder, with the certificates that this machine's owner added."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.parent.mkdir(parents=True, exist_ok=True)
    print(f"making a minimal {suite}: 1 to 3 minutes", file=sys.stderr)
    include = [f"--include={packages}"] if packages else []
    command = ["mmdebstrap", "--quiet", "--variant=minbase", *include, suite, str(tree), mirror]
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise LabError(
            f"mmdebstrap failed, see the messages above. Has {mirror} a suite {suite}? Another "
            "distribution needs --mirror, and its keyring installed here (ubuntu-keyring)."
        )
    shutil.copytree(f"/{CERTIFICATES}", tree / CERTIFICATES, dirs_exist_ok=True)


def _command(tree: Path, from_scratch: bool) -> list[str]:
    """Set up in the system, then run the figure."""
    words = ["bwrap", "--die-with-parent", "--unshare-pid", "--bind", str(tree), "/"]
    words += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"]
    words += ["--tmpfs", "/run", "--ro-bind", "/sys", "/sys", "--cap-add", "ALL", "--clearenv"]
    words += [] if from_scratch else cache_places(CACHE)
    words += [
        "--setenv",
        "PATH",
        "/usr/sbin:/usr/bin:/sbin:/bin",
        "--setenv",
        "HOME",
        "/home/proof",
    ]
    words += ["--setenv", "PYTHONPATH", f"{PLACE}/lab", "--setenv", "LC_ALL", "C.UTF-8"]
    for variable in (*PROXIES, *map(str.upper, PROXIES)):
        if variable in os.environ:
            words += ["--setenv", variable, os.environ[variable]]
    steps = EVERYTHING if from_scratch else LIBRARIES
    figure = f"{SCRIPT} build/venv/bin/python build/proof"
    return [*words, "--chdir", PLACE, "sh", "-c", f"{steps} && {figure}"]


def _built(tree: Path, clone: Path, from_scratch: bool) -> list[Path]:
    """The files that were built there."""
    files = modules_and_preload(clone)
    if from_scratch:
        files += (tree / CACHE.lstrip("/") / "kernels").glob("*/linux")
        files.append(clone / "build" / "bin" / "steady-guest")
    return files
