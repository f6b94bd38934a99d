# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build a lab kernel once and keep it in the cache, by content key.

It is built in the lab's root, at the same paths on every machine: the same key (source,
configuration fragments, root, this recipe) means the same bytes. An interrupted build continues
where it stopped.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.kernels.architecture import QEMU_FLAVOURS, Architecture, of_flavour
from steady_lab.kernels.source import KernelSource, present
from steady_lab.paths import GUEST_KERNEL, INSIDE_SOURCE, KERNEL_CONFIGS, cache_dir
from steady_lab.progress import Progress
from steady_lab.root.given import KERNELS, NOT_WHOLE, STAMP, bring, empty, locked
from steady_lab.root.root import build_root, build_root_key, guest_root
from steady_lab.root.sandbox import Place, build_sandbox, run_inside, start_inside

RECIPE_VERSION = 2
# Lines that `make` prints for one build, counted on 6.1; only the estimate depends on them.
LINES_EXPECTED = {"base": 1440, "debug": 1490, "bits32": 100} | dict.fromkeys(QEMU_FLAVOURS, 1900)
# Fixed, so that the kernel's version string is the same on every machine.
BUILD_IDENTITY = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "steadyio",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}


@dataclass(frozen=True)
class LabKernel:
    """A built kernel: `tree` is its object folder, `linux` what a target runs of it.

    `source` is the tree that it was built from; it may be missing if the kernel came compiled.
    """

    tree: Path
    source: Path
    release: str
    flavour: str
    key: str
    config_sha256: str

    @property
    def linux(self) -> Path:
        """The UML program, or the image that QEMU starts."""
        return self.tree / of_flavour(self.flavour).program

    def make(self, more: Sequence[Place], *arguments: str) -> list[str]:
        """Return the command that runs make for a module of this kernel, in the lab's root."""
        where = ("-C", GUEST_KERNEL)
        architecture = of_flavour(self.flavour)
        inside = _inside(architecture, self.source, self.tree, more)
        return [*inside, *_make(architecture, *where, *arguments)]


def build_kernel(source: KernelSource, flavour: str = "base", jobs: int | None = None) -> LabKernel:
    """Build the kernel, or return the finished one from the cache.

    Raises LabError when the configuration cannot be met or the build fails.
    """
    key = content_key(source, flavour)
    tree = _tree(source, flavour, key)
    finished = _finished(tree, source, flavour, key)
    if finished:
        return finished
    bring(f"{KERNELS}/{tree.name}")
    tree.mkdir(parents=True, exist_ok=True)
    with locked(tree / ".lock"):
        finished = _finished(tree, source, flavour, key)
        if finished:
            return finished
        with whole_files_only(tree):
            _configure(source, tree, flavour)
            _compile(source, tree, flavour, jobs or os.cpu_count() or 1)
        if of_flavour(flavour).installs_modules:
            _install_modules(source, tree, flavour)
        _stamp(tree, source, flavour)
    finished = _finished(tree, source, flavour, key)
    if not finished:
        raise LabError(f"the build of {tree} succeeded, but left no kernel; see {tree}/build.log")
    return finished


def kernel_folder(source: KernelSource, flavour: str) -> Path:
    """Return where the cache has this kernel, or would have it; the source may be missing."""
    return _tree(source, flavour, content_key(source, flavour))


def _tree(source: KernelSource, flavour: str, key: str) -> Path:
    return cache_dir() / KERNELS / f"{source.release}-{flavour}-{key[:16]}"


def config_fragments(flavour: str, release: str) -> list[Path]:
    """The configuration files of a flavour, in the order of application.

    FLAVOUR.config is for all releases, FLAVOUR-RELEASE.config for one of them.
    """
    first = of_flavour(flavour).fragment
    flavours = [first] if flavour == first else [first, flavour]
    names = [name for part in flavours for name in (f"{part}.config", f"{part}-{release}.config")]
    return [KERNEL_CONFIGS / name for name in names if (KERNEL_CONFIGS / name).is_file()]


def content_key(source: KernelSource, flavour: str) -> str:
    """Return the hash of all that decides the kernel; the source may be missing."""
    digest = hashlib.sha256(
        f"{RECIPE_VERSION}\n{source.content_key}\n{build_root_key()}\n".encode()
    )
    digest.update(of_flavour(flavour).recipe())
    for fragment in config_fragments(flavour, source.release):
        digest.update(fragment.read_bytes())
    return digest.hexdigest()


def _finished(tree: Path, source: KernelSource, flavour: str, key: str) -> LabKernel | None:
    """The kernel in `tree`, if its build was completed and its program has not changed since."""
    try:
        stamp = json.loads((tree / STAMP).read_text())
        digest = sha256_file(tree / of_flavour(flavour).program)
    except (OSError, ValueError):
        return None
    if stamp.get("linux_sha256") != digest:
        return None
    return LabKernel(tree, source.tree, source.release, flavour, key, stamp["config_sha256"])


def _stamp(tree: Path, source: KernelSource, flavour: str) -> None:
    stamp = {
        "source": source.name,
        "linux_sha256": sha256_file(tree / of_flavour(flavour).program),
        "config_sha256": sha256_file(tree / ".config"),
    }
    scratch = tree / f"{STAMP}.new"
    scratch.write_text(json.dumps(stamp, indent=1) + "\n")
    scratch.rename(tree / STAMP)


@contextmanager
def whole_files_only(tree: Path) -> Iterator[None]:
    """Start over in a tree where make was killed or lost power: some files may be parts."""
    running = tree / NOT_WHOLE
    if running.exists():
        print(f"starting again in {tree}: an earlier build there was killed", flush=True)
        empty(tree)
    running.touch()
    try:
        yield
    finally:
        running.unlink()


def _inside(
    architecture: Architecture, source: Path, tree: Path, more: Sequence[Place] = ()
) -> list[str]:
    places = [
        Place(present(source), INSIDE_SOURCE),
        Place(tree, GUEST_KERNEL, writable=True),
        *more,
    ]
    places += architecture.places()
    environment = BUILD_IDENTITY | dict(architecture.environment)
    return build_sandbox(build_root().path, places, environment)


def _make(architecture: Architecture, *arguments: str) -> list[str]:
    return ["make", f"ARCH={architecture.name}", *architecture.variables, *arguments]


def _started(
    source: KernelSource, tree: Path, flavour: str, *arguments: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start make for the kernel in `tree`."""
    architecture = of_flavour(flavour)
    where = ("-C", INSIDE_SOURCE, f"O={GUEST_KERNEL}", *architecture.kernel_variables)
    inside = _inside(architecture, source.tree, tree)
    return start_inside(inside, _make(architecture, *where, *arguments))


def _configure(source: KernelSource, tree: Path, flavour: str) -> None:
    """tinyconfig plus our fragments; fails if a dependency disabled an option."""
    before = (tree / ".config").read_bytes() if (tree / ".config").exists() else b""
    _run_quietly(source, tree, flavour, "tinyconfig")
    with (tree / ".config").open("ab") as config:
        for fragment in config_fragments(flavour, source.release):
            config.write(fragment.read_bytes())
    _run_quietly(source, tree, flavour, "olddefconfig")
    missing = unmet_options(_wanted(flavour, source.release), (tree / ".config").read_text())
    if missing:
        raise LabError(
            f"this kernel source cannot have {', '.join(missing)}: the options do not exist or "
            f"their dependencies are not met. Change {KERNEL_CONFIGS}/{flavour}.config."
        )
    if (tree / ".config").read_bytes() == before:
        print(f"continuing the build in {tree}", flush=True)


def _wanted(flavour: str, release: str) -> dict[str, str]:
    wanted = {}
    for fragment in config_fragments(flavour, release):
        for line in fragment.read_text().splitlines():
            if line.startswith("CONFIG_"):
                name, _, value = line.partition("=")
                wanted[name] = value
    return wanted


def unmet_options(wanted: dict[str, str], config: str) -> list[str]:
    """Which wanted `NAME=value` options a finished .config does not have."""
    lines = set(config.splitlines())
    unmet = []
    for name, value in wanted.items():
        met = f"{name}={value}" in lines
        if value == "n":
            met = not any(line.startswith(f"{name}=") for line in lines)
        if not met:
            unmet.append(f"{name}={value}")
    return unmet


def _run_quietly(source: KernelSource, tree: Path, flavour: str, *arguments: str) -> None:
    with _started(source, tree, flavour, *arguments) as make:
        output, _ = make.communicate()
    if make.returncode != 0:
        raise LabError(f"make {' '.join(arguments)} in {tree} failed:\n{output.strip()[-2000:]}")


def _install_modules(source: KernelSource, tree: Path, flavour: str) -> None:
    """Put them where modprobe looks: lib/modules below the tree. The guest's root has depmod."""
    installed = ("modules_install", f"INSTALL_MOD_PATH={GUEST_KERNEL}", "DEPMOD=true")
    _run_quietly(source, tree, flavour, *installed)
    (version,) = (path.name for path in (tree / "lib" / "modules").iterdir())
    place = Place(tree, GUEST_KERNEL, writable=True)
    done = run_inside(guest_root().path, ["depmod", "-b", GUEST_KERNEL, version], [place])
    if done.returncode != 0:
        raise LabError(f"depmod for {version} failed: {done.stderr.strip()}")


def _compile(source: KernelSource, tree: Path, flavour: str, jobs: int) -> None:
    print(
        f"building the {flavour} lab kernel from {source.name} in {tree}\n"
        f"(once; 4 to 8 minutes on two cores; Ctrl-C is safe, the next run continues)",
        flush=True,
    )
    arguments = (f"-j{jobs}", *of_flavour(flavour).targets)
    progress = Progress(f"{flavour} kernel, files", LINES_EXPECTED[flavour])
    log_path = tree / "build.log"
    with log_path.open("w") as log, _started(source, tree, flavour, *arguments) as make:
        assert make.stdout is not None
        for done, line in enumerate(make.stdout):
            log.write(line)
            progress.update(done, line.strip()[:60])
        status = make.wait()
    if status != 0:
        tail = "".join(log_path.read_text().splitlines(keepends=True)[-30:])
        raise LabError(f"building the kernel failed (make: {status}), log {log_path}:\n{tail}")
    progress.finish(f"{flavour} kernel built")
