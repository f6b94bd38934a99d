# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run the small figure on an emulated processor, under the stock kernel of Debian 12.

QEMU emulates the processor in software. Its machine boots from an initramfs made here and sees this
machine's files read-only, below a tmpfs for writes. Nothing is compiled there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from proof import KEPT, SCRIPT, Proof, complete, watch
from steady_lab.errors import LabError
from steady_lab.paths import PROJECT, cache_dir
from steady_lab.root.apt import Apt

MODELS = ("qemu64", "Nehalem", "max")
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
TIMEOUT_S = 2400
INIT = Path(__file__).with_name("emulated_init.sh")


def prove_processor(model: str) -> Proof:
    """Run the figure on one model of QEMU's (`qemu-system-x86_64 -cpu help`)."""
    if not shutil.which("qemu-system-x86_64"):
        raise LabError("qemu-system-x86_64 is missing: apt install qemu-system-x86")
    log = KEPT / f"processor-{model}.log"
    with tempfile.TemporaryDirectory(prefix="steadyio-proof-") as name:
        scratch = Path(name)
        kernel, initramfs = _fetch_kernel(scratch / "packages"), scratch / "initramfs"
        _make_initramfs(scratch / "packages", scratch / "tree", initramfs)
        print(f"emulating {model}: about 5 minutes; the log is {log}", file=sys.stderr)
        facts = watch(_qemu(model, kernel, initramfs), log, TIMEOUT_S)
    where = f"emulated, `-cpu {model}`"
    return Proof(f"processor-{model}", where, complete(facts, log))


def _fetch_kernel(folder: Path) -> Path:
    """Download and unpack the stock kernel and busybox, and return the kernel's file."""
    folder.mkdir()
    apt = Apt()
    apt.update()
    versions = apt.closure(["linux-image-amd64", "busybox-static"])
    wanted = [name for name in versions if re.fullmatch(r"linux-image-\d.*|busybox-static", name)]
    print(f"downloading {' and '.join(wanted)}", file=sys.stderr)
    if apt.run(["download", *wanted], cwd=folder, show=True).returncode != 0:
        raise LabError("apt-get download failed, see the messages above: is the network up?")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    (kernel,) = folder.glob("boot/vmlinuz-*")
    return kernel


def _make_initramfs(packages: Path, tree: Path, target: Path) -> None:
    """Busybox, the modules that find this machine's files, and the script that runs the figure."""
    for name in ("bin", "dev", "proc", "sys", "new", "lower", "upper", "modules"):
        (tree / name).mkdir(parents=True)
    busybox = tree / "bin" / "busybox"
    (built,) = (path for path in packages.glob("**/bin/busybox"))
    shutil.copy2(built, busybox)
    files = {path.stem: path for path in packages.rglob("*.ko")}
    order = dict.fromkeys(name for wanted in MODULES for name in _needed(files, wanted))
    for name in order:
        shutil.copy2(files[name], tree / "modules")
    (tree / "modules" / "order").write_text("\n".join(order) + "\n", encoding="utf-8")
    shutil.copy2(INIT, tree / "init")
    (tree / "go").write_text(_commands(), encoding="utf-8")
    with target.open("wb") as stream:
        names = subprocess.run(["find", "."], cwd=tree, capture_output=True, check=True).stdout
        pack = [str(busybox), "cpio", "-o", "-H", "newc"]
        # It says on standard error how many blocks it wrote.
        subprocess.run(
            pack, cwd=tree, input=names, stdout=stream, stderr=subprocess.DEVNULL, check=True
        )


def _needed(files: dict[str, Path], name: str) -> Iterator[str]:
    """A module after all that it needs."""
    depends = re.search(rb"\0depends=([^\0]*)\0", files[name].read_bytes())
    for needed in filter(None, depends.group(1).decode().split(",") if depends else []):
        yield from _needed(files, needed)
    yield name


def _commands() -> str:
    """What runs there: the figure, with the lab and the cache of this machine."""
    home, cache = shlex.quote(str(Path.home())), shlex.quote(str(cache_dir()))
    path = shlex.quote(os.environ.get("PYTHONPATH", ""))
    return (
        f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME={home} STEADYIO_CACHE={cache}\n"
        f"export PYTHONPATH={path}\n"
        f"cd {shlex.quote(str(PROJECT))}\n"
        f"{SCRIPT} {shlex.quote(sys.executable)} /run/proof\n"
        "echo o >/proc/sysrq-trigger\n"
        "sleep 60\n"
    )


def _qemu(model: str, kernel: Path, initramfs: Path) -> list[str]:
    files = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", model),
        *("-smp", "2", "-m", "3G", "-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot"),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-virtfs", files),
    ]
