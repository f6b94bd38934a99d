# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's own kernels, unmodified, and what builds modules for them.

Their versions are those of the sources that lab kernels are built from: k2 needs private headers of
the very same version, which Debian's header packages leave out.
"""

import fcntl
import hashlib
import json
import lzma
import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.kernels.build import BUILD_IDENTITY
from steady_lab.kernels.source import find_source
from steady_lab.paths import INSIDE_SOURCE, cache_dir
from steady_lab.root.apt import fetch
from steady_lab.root.lock import STOCK, Package, locked_packages
from steady_lab.root.root import build_root, guest_root, unpack_package
from steady_lab.root.sandbox import Place, build_sandbox, run_inside

RECIPE_VERSION = 1
INSIDE_STOCK = "/run/steadyio/stock"


@dataclass(frozen=True)
class StockKernel:
    """An unpacked kernel of Debian: `version` is what `uname -r` prints.

    `source` is the tree with the private headers. `flavour` is for messages and folders only.
    """

    tree: Path
    source: Path
    release: str
    version: str
    key: str
    flavour: str = "stock"

    @property
    def image(self) -> Path:
        """The compressed kernel that a boot loader starts."""
        return self.tree / "boot" / f"vmlinuz-{self.version}"

    @property
    def config_sha256(self) -> str:
        """The hash of its configuration."""
        return sha256_file(self.tree / "boot" / f"config-{self.version}")

    def make(self, more: Sequence[Place], *arguments: str) -> list[str]:
        """Return the command that runs make for a module of this kernel, in the lab's root."""
        places = [Place(self.tree, INSIDE_STOCK), Place(self.source, INSIDE_SOURCE), *more]
        libraries = {"LD_LIBRARY_PATH": f"{INSIDE_STOCK}/usr/lib/x86_64-linux-gnu"}
        inside = build_sandbox(build_root().path, places, BUILD_IDENTITY | libraries)
        headers = f"{INSIDE_STOCK}/usr/src/linux-headers-{self.version}"
        private = [
            f"K2_BLOCK_DIR={INSIDE_SOURCE}/block",
            f"CHARIO_MMC_DIR={INSIDE_SOURCE}/drivers/mmc/core",
        ]
        return [*inside, "make", "-C", headers, *private, *arguments]

    def module_closure(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Name and content of modules and of all that they need, in the order of loading.

        Raises LabError if the kernel has none of that name.
        """
        found: dict[str, bytes] = {}
        for name in names:
            done = run_inside(
                guest_root().path,
                ["modprobe", "-d", INSIDE_STOCK, "-S", self.version, "--show-depends", name],
                [Place(self.tree, INSIDE_STOCK)],
            )
            if done.returncode != 0:
                raise LabError(f"{self.version} has no module {name}: {done.stderr.strip()}")
            for word, _, path in (line.partition(" ") for line in done.stdout.splitlines()):
                if word == "insmod":
                    file = self.tree / Path(path.split()[0]).relative_to(INSIDE_STOCK)
                    found.setdefault(file.name.removesuffix(".xz"), _uncompressed(file))
        return list(found.items())


def stock_kernel(release: str) -> StockKernel:
    """Debian's kernel of a release, from the cache; unpacked there first. Raises LabError."""
    packages = locked_packages(f"{STOCK}-{release}")
    recipe = [RECIPE_VERSION, list(map(astuple, packages))]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    tree = cache_dir() / "stock" / f"{release}-{key[:16]}"
    version = _version(packages)
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        with (tree.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not tree.is_dir():
                _unpack(tree, packages, version)
    source = find_source(None, release)
    _refuse_other_source(source.name, packages)
    return StockKernel(tree, source.tree, release, version, key)


def _version(packages: Sequence[Package]) -> str:
    prefix = "linux-image-"
    (image,) = (package.name for package in packages if package.name.startswith(prefix))
    return image.removeprefix(prefix)


def _refuse_other_source(source: str, packages: Sequence[Package]) -> None:
    """Private headers of another version would compile and be wrong."""
    version = next(p.version for p in packages if p.name.startswith("linux-image-"))
    if source.split()[-1] != version:
        raise LabError(
            f"the stock kernel is {version}, the source is {source}: k2 needs the source of the "
            "same version. Unset STEADYIO_KERNEL_SOURCE, or run `steady-lab root lock`."
        )


def _unpack(tree: Path, packages: Sequence[Package], version: str) -> None:
    partial = tree.with_name(f"{tree.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for file in fetch(packages):
        unpack_package(file, partial)
    headers = partial / "usr/src" / f"linux-headers-{version}"
    # It includes the Makefile of the common headers by the path that an installed system has.
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace(" /usr/src/", f" {INSIDE_STOCK}/usr/src/"))
    # Its type information; with it a module gets some, too, for which the root has no tool.
    (headers / "vmlinux").unlink(missing_ok=True)
    done = run_inside(
        guest_root().path,
        ["depmod", "-b", INSIDE_STOCK, version],
        [Place(partial, INSIDE_STOCK, writable=True)],
    )
    if done.returncode != 0:
        raise LabError(f"depmod for {version} failed: {done.stderr.strip()}")
    partial.rename(tree)


def _uncompressed(module: Path) -> bytes:
    content = module.read_bytes()
    return lzma.decompress(content) if module.suffix == ".xz" else content
