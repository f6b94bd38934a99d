# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build the command `steady` and the C interface in the lab's root, for guests and this machine.

They are linked against the libc of Debian 12, so they run on that and on newer systems. For ARM
they are built as for development: sooner there, and an overflow ends them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steady_lab.errors import LabError
from steady_lab.paths import BUILD, GUEST_PROJECT, PROJECT, cache_dir
from steady_lab.root.compiler import COMPILERS
from steady_lab.root.given import PROGRAMS as GIVEN_PROGRAMS
from steady_lab.root.given import given, part
from steady_lab.root.lock import NATIVE
from steady_lab.root.root import build_root, build_root_key
from steady_lab.root.sandbox import Place, build_sandbox

TARGET, HOME = "/run/steadyio/target", "/run/steadyio/cargo"
# To raise when this file builds otherwise.
RECIPE_VERSION = 1


class _Program(NamedTuple):
    package: str
    minutes: str  # to build it, on two cores


PROGRAMS = {
    "steady": _Program("steady", "4 to 7"),
    "steady-guest": _Program("steadyio-command", "1 to 3"),
    "steady-recipe": _Program("steadyio-command", "1 to 3"),
}
SOURCE_SUFFIXES = {".rs", ".toml", ".lock"}
INSTALLED = "/run/steadyio/installed"
MATURIN = "/run/steadyio/maturin"
# Rust's names of Debian's architectures.
RUST_TARGETS = {"arm64": "aarch64-unknown-linux-gnu", "armhf": "armv7-unknown-linux-gnueabihf"}


def build_steady() -> Path:
    """Return build/bin/steady, built if its sources changed; raises LabError.

    Needs the network once, for the crates that device/Cargo.lock names.
    """
    return _program("steady")


def build_steady_guest() -> Path:
    """Return build/bin/steady-guest, the part of `steady` that figures run; as build_steady()."""
    return _program("steady-guest")


def build_steady_recipe() -> Path:
    """Return build/bin/steady-recipe, which records as a paper does; as build_steady()."""
    return _program("steady-recipe")


def built_program(path: Path) -> Path:
    """Return `path`, a program in build/bin, which is built if it is not there."""
    return path if path.is_file() else _program(path.name)


def _program(name: str) -> Path:
    installed = BUILD / "bin" / name
    prebuilt = given(programs_part(), name)
    if prebuilt.is_file():
        return _install(prebuilt, installed)
    if not installed.is_file():
        print(f"building {name} ({PROGRAMS[name].minutes} minutes, once)", file=sys.stderr)
    _build("--release", "--bin", name, package=PROGRAMS[name].package)
    return _install(BUILD / "steady" / "release" / name, installed)


def programs_part() -> str:
    """Return the name of the programs of these sources (given.py)."""
    digest = hashlib.sha256(f"{RECIPE_VERSION}\n{build_root_key()}\n".encode())
    for path in sorted((PROJECT / "device").rglob("*")):
        if path.suffix in SOURCE_SUFFIXES:
            digest.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    return part(GIVEN_PROGRAMS, digest.hexdigest())


def build_steady_for(architecture: str) -> Path:
    """Return build/bin-ARCHITECTURE/steady, built if its sources changed; raises LabError.

    libsteadyio is built, too: static_library_for().
    """
    target = RUST_TARGETS[architecture]
    _build("--target", target, "--package", "steadyio-capi", architecture=architecture)
    return _install(_built_for(architecture) / "steady", BUILD / f"bin-{architecture}" / "steady")


def build_released_steady_for(architecture: str) -> Path:
    """Return build/bin-ARCHITECTURE/release/steady, as packages have it; as build_steady_for()."""
    target = RUST_TARGETS[architecture]
    _build("--release", "--target", target, architecture=architecture)
    built = BUILD / "steady" / target / "release" / "steady"
    return _install(built, BUILD / f"bin-{architecture}" / "release" / "steady")


def static_library_for(architecture: str) -> Path:
    """Return the libsteadyio that build_steady_for() left."""
    return _built_for(architecture) / "libsteadyio_capi.a"


def _built_for(architecture: str) -> Path:
    return BUILD / "steady" / RUST_TARGETS[architecture] / "debug"


def _build(*options: str, package: str = "steady", architecture: str = NATIVE) -> None:
    """Build, with the crates downloaded first if the build fails without; raises LabError."""
    words = ("--offline", "--package", package, *options)
    if _cargo("build", *words, architecture=architecture):
        return
    print(f"downloading the crates of device/Cargo.lock, then building {package}", file=sys.stderr)
    if not _cargo("fetch", network=True, quiet=False):
        raise LabError("cargo fetch failed, see the messages above: is the network up?")
    if not _cargo("build", *words, quiet=False, architecture=architecture):
        raise LabError(f"building {package} for {architecture} failed, see the messages above")


def _install(built: Path, installed: Path) -> Path:
    installed.parent.mkdir(parents=True, exist_ok=True)
    if not installed.is_file() or installed.read_bytes() != built.read_bytes():
        unfinished = installed.with_name(f"{installed.name}.{os.getpid()}.new")
        shutil.copy2(built, unfinished)
        unfinished.replace(installed)
    return installed


def install_capi(folder: Path, architecture: str = NATIVE) -> None:
    """Build the C interface and install it with prefix /usr below `folder`; raises LabError."""
    words = ["bash", "scripts/install-capi", "--prefix", "/usr", "--destdir", INSTALLED]
    _build_into(folder, "the C interface", words, [], architecture)


def build_wheel_for(architecture: str, folder: Path) -> None:
    """Build the Python package of the recorder into `folder`; raises LabError.

    The build root has no Python: the wheel is for every version, and maturin is one program.
    """
    maturin = Path(sys.executable).with_name("maturin")
    words = [MATURIN, "build", "--release", "--manifest-path", "device/python/Cargo.toml"]
    words += ["--target", RUST_TARGETS[architecture], "--compatibility", "pypi", "--out", INSTALLED]
    places = [Place(maturin, MATURIN)]
    _build_into(folder, "the Python package", words, places, architecture)


def _build_into(
    folder: Path, what: str, words: Sequence[str], places: Sequence[Place], architecture: str
) -> None:
    """Run a command in the root that builds for an architecture and writes into INSTALLED."""
    build_steady()  # also downloads the crates
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"CARGO_NET_OFFLINE": "true", **_cross(architecture)}
    if architecture != NATIVE:
        environment["CARGO_BUILD_TARGET"] = RUST_TARGETS[architecture]
    places = [Place(folder.resolve(), INSTALLED, writable=True), *places]
    inside = _inside(environment, places, architecture=architecture)
    done = subprocess.run([*inside, *words], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise LabError(f"building {what} for {architecture} failed, see the messages above")


def _cargo(
    action: str,
    *options: str,
    network: bool = False,
    quiet: bool = True,
    architecture: str = NATIVE,
) -> bool:
    """Run cargo in the root; False if it fails. `quiet`: without output, for a first try."""
    inside = _inside(_cross(architecture), [], network, architecture)
    words = ["cargo", action, "--locked", "--manifest-path", "device/Cargo.toml", *options]
    if not sys.stdout.isatty():
        words.append("--quiet")
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run([*inside, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    return done.returncode == 0


def _cross(architecture: str) -> Mapping[str, str]:
    """What links programs for another architecture, and compiles the C of crates."""
    if architecture == NATIVE:
        return {}
    compiler, name = COMPILERS[architecture], RUST_TARGETS[architecture].replace("-", "_")
    # The crate io-uring has the kernel's structures for 64-bit processors. They are the same for 32
    # bits, but the crate then needs this flag.
    flags = {"armhf": "--cfg=io_uring_skip_arch_check"}.get(architecture, "")
    return {
        f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": flags,
        f"CARGO_TARGET_{name.upper()}_LINKER": compiler,
        f"CC_{name}": compiler,
        # 100 MB less to link.
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }


def _inside(
    environment: Mapping[str, str],
    more: Sequence[Place],
    network: bool = False,
    architecture: str = NATIVE,
) -> list[str]:
    """Return the command before one that calls cargo."""
    target, home = BUILD / "steady", cache_dir() / "cargo"
    for folder in (target, home):
        folder.mkdir(parents=True, exist_ok=True)
    places = [
        Place(PROJECT, GUEST_PROJECT),
        Place(target, TARGET, writable=True),
        Place(home, HOME, writable=True),
        *more,
    ]
    variables = {"CARGO_HOME": HOME, "CARGO_TARGET_DIR": TARGET, **environment}
    return build_sandbox(build_root(architecture).path, places, variables, GUEST_PROJECT, network)
