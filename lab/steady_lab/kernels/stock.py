# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's own kernels, unmodified, and what builds modules for them.

Each comes with the source of its very version: k2 needs private headers of it, which Debian's
header packages leave out. 6.1 and 6.12 are also the lab kernels; 7.3, of Debian 13, is not. 6.12
is there for ARM of 64 and of 32 bits, too: of the same source, and its modules are compiled on this
machine. Of each for x86-64 there is one with PREEMPT_RT.
"""

import fcntl
import hashlib
import json
import lzma
import re
import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from steady_lab.errors import LabError
from steady_lab.hashes import sha256_file
from steady_lab.kernels.build import BUILD_IDENTITY
from steady_lab.kernels.source import RELEASES, find_source
from steady_lab.paths import INSIDE_SOURCE, cache_dir
from steady_lab.root.apt import fetch
from steady_lab.root.lock import (
    NATIVE,
    STOCK,
    Package,
    architecture,
    is_of_debian_13,
    locked_packages,
)
from steady_lab.root.root import Root, build_root, build_root_13, guest_root, unpack_package
from steady_lab.root.sandbox import Place, build_sandbox, run_inside

ARM_KERNELS = ("6.12-arm64", "6.12-armhf")
RT_KERNELS = tuple(f"{release}-rt" for release in RELEASES)
STOCK_KERNELS = (*RELEASES, *ARM_KERNELS, *RT_KERNELS)
RECIPE_VERSION = 1
INSIDE_STOCK = "/run/steadyio/stock"


@dataclass(frozen=True)
class StockKernel:
    """An unpacked kernel of Debian: `version` is what `uname -r` prints.

    `source` is the tree with the private headers, `architecture` Debian's name. `flavour` is for
    messages and folders only.
    """

    tree: Path
    source: Path
    release: str
    version: str
    key: str
    architecture: str = NATIVE
    flavour: str = "stock"

    @property
    def image(self) -> Path:
        """The compressed kernel that a boot loader starts."""
        return self._first("boot/vmlinuz-{}", "usr/lib/modules/{}/vmlinuz")

    @property
    def config_sha256(self) -> str:
        """The hash of its configuration."""
        return sha256_file(self._first("boot/config-{}", "usr/lib/modules/{}/config"))

    def _first(self, *names: str) -> Path:
        """The first existing file; 7.3 has these files with its modules, others in /boot."""
        paths = [self.tree / name.format(self.version) for name in names]
        return next(path for path in paths if path.is_file())

    def make(self, more: Sequence[Place], *arguments: str) -> list[str]:
        """Return the command that runs make for a module of this kernel, in its build root."""
        places = [Place(self.tree, INSIDE_STOCK), Place(self.source, INSIDE_SOURCE), *more]
        libraries = {"LD_LIBRARY_PATH": f"{INSIDE_STOCK}/usr/lib/x86_64-linux-gnu"}
        inside = build_sandbox(self._builds().path, places, BUILD_IDENTITY | libraries)
        headers = f"{INSIDE_STOCK}/usr/src/linux-headers-{self.version}"
        settings = [
            f"K2_BLOCK_DIR={INSIDE_SOURCE}/block",
            f"CHARIO_MMC_DIR={INSIDE_SOURCE}/drivers/mmc/core",
            # 7.3 warns of another one, also where it makes no type information.
            "PAHOLE_VERSION=$(CONFIG_PAHOLE_VERSION)",
        ]
        return [*inside, "make", "-C", headers, *settings, *arguments]

    def _builds(self) -> Root:
        """Where its modules are compiled: with the compiler that its headers name."""
        of_13 = is_of_debian_13(f"{STOCK}-{self.release}")
        return build_root_13() if of_13 else build_root(self.architecture)

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


def stock_kernel(name: str) -> StockKernel:
    """Debian's kernel, one of STOCK_KERNELS, from the cache; unpacked there first.

    Raises LabError.
    """
    purpose = f"{STOCK}-{name}"
    packages = locked_packages(purpose)
    recipe = [RECIPE_VERSION, list(map(astuple, packages))]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    tree = cache_dir() / "stock" / f"{name}-{key[:16]}"
    version = _version(packages)
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        with (tree.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not tree.is_dir():
                _unpack(tree, packages, version)
    release = name.partition("-")[0]
    source = find_source(None, release)
    _refuse_other_source(source.name, packages)
    return StockKernel(tree, source.tree, release, version, key, architecture(purpose))


def image_package(packages: Sequence[Package]) -> Package:
    """The package of a stock kernel that has the kernel itself."""
    return next(p for p in packages if p.name.startswith(("linux-image-", "linux-binary-")))


def _version(packages: Sequence[Package]) -> str:
    return image_package(packages).name.split("-", 2)[2]


def _refuse_other_source(source: str, packages: Sequence[Package]) -> None:
    """Private headers of another version would compile and be wrong."""
    version = image_package(packages).version
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
    # It names itself and the common headers by the paths that an installed system has.
    makefile = headers / "Makefile"
    makefile.write_text(
        re.sub("(?<=[ =])/usr/src/", f"{INSIDE_STOCK}/usr/src/", makefile.read_text())
    )
    # kmod looks for modules in /lib, which is a link in Debian 13.
    if not (partial / "lib").exists():
        (partial / "lib").symlink_to("usr/lib")
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
