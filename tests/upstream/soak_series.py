# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each patch of the series builds without a warning, boots, and passes I/O; called by scripts/soak.

The last one also passes the module's own tests. Takes about half an hour on two cores.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernel_scripts import SCRIPTS, build_helpers, header, is_for, request_of
from steady_lab.kernels.build import LabKernel, config_fragments
from steady_lab.kernels.source import packaged_source, present
from steady_lab.paths import BUILD, GUEST_KERNEL, INSIDE_SOURCE
from steady_lab.root.root import build_root
from steady_lab.root.sandbox import Place, run_inside
from steady_lab.targets.target import BootError, RunError
from steady_lab.targets.uml import Uml
from trees import RELEASE, make_series, run, signed_off

HERE = Path(__file__).parent
READY = ".git/refs/tags/unpatched"
# Sparse 0.6.4 does not know this word, and reports the MODULE_ macros of each scheduler.
SPARSE = "CHECK=sparse -D__typeof_unqual__=__typeof__"
KNOWN = re.compile(r"block/k2/main\.c:\d+:1: error: bad constant expression$")
# Checkpatch asks whether MAINTAINERS lists a new file. It does, by its folder.
IGNORED = "FILE_PATH_CHANGES"
# With the module on this kernel, too.
FAILS = "k2_declared_late_start_is_counted"
# Scripts that use what only the module has: lanes in rt_excess, and the module itself.
ONLY_MODULE = ("rt_excess", "lane_blocked", "/sys/module/k2", "rmmod k2", "k2_remove_")


@dataclass(frozen=True)
class Tree:
    """A copy of the kernel's source, and the objects made of it."""

    source: Path
    objects: Path
    patches: list[Path]

    def make(self, *arguments: str) -> str:
        """Run make in the lab's root; returns what it printed."""
        places = [
            Place(self.source, INSIDE_SOURCE),
            Place(self.objects, GUEST_KERNEL, writable=True),
        ]
        # W=1 would check the comments of the kernel's documentation, in Python.
        where = ["make", "ARCH=um", "-C", INSIDE_SOURCE, f"O={GUEST_KERNEL}", "PYTHON3=true"]
        done = run_inside(build_root().path, [*where, *arguments], places)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    def configure(self, k2: str) -> None:
        """The lab's configuration, and k2 built in (y) or as a module (m)."""
        self.make("tinyconfig")
        texts = [path.read_text() for path in config_fragments("base", RELEASE)]
        with (self.objects / ".config").open("a") as config:
            config.write("".join([*texts, f"CONFIG_MQ_IOSCHED_K2={k2}\n"]))
        self.make("olddefconfig")
        assert f"CONFIG_MQ_IOSCHED_K2={k2}\n" in (self.objects / ".config").read_text()

    def checked(self) -> list[str]:
        """What the compiler with W=1 and sparse report on the series' files."""
        files = ["block/k2/"]
        if (self.source / "block" / "blk-mq-split.c").exists():
            files.append("block/blk-mq-split.o")
        lines = self.make("-j2", "W=1", "C=2", SPARSE, *files).splitlines()
        return [
            line
            for line in lines
            if re.search(r"(block/k2/|blk-mq-split).*(warning|error):", line)
            and not KNOWN.search(line)
        ]

    def target(self) -> Uml:
        """The kernel that was built, to boot."""
        kernel = LabKernel(self.objects, self.source, RELEASE, "base", "series", "series")
        return Uml(kernel, has_k2=True)


@pytest.fixture(scope="session")
def tree() -> Iterator[Tree]:
    """Return the copy of the last run, if it was of the same source, so that little is compiled."""
    source = present(packaged_source(RELEASE).tree)
    home = BUILD / "kernel-series" / source.parent.name
    tree = Tree(home / "source", home / "objects", [])
    tree.objects.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        signed_off(patch)
        _, *patches = make_series(source, home / "patches")
        if not (tree.source / READY).exists():
            copy(source, tree.source)
        shutil.rmtree(tree.source / ".git" / "rebase-apply", ignore_errors=True)
        run(["git", "reset", "--quiet", "--hard", "unpatched"], tree.source)
        tree.patches.extend(patches)
        yield tree


def copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    run(["git", "init", "--quiet"], target)
    names = ["block", "MAINTAINERS", "Documentation/block", "Documentation/ABI/testing"]
    run(["git", "add", "--force", *names], target)
    run(["git", "commit", "--quiet", "--message", "tree"], target)
    run(["git", "tag", "unpatched"], target)


def apply(tree: Tree, patch: Path) -> None:
    checkpatch = ["perl", "scripts/checkpatch.pl", "--strict", "--quiet", f"--ignore={IGNORED}"]
    run([*checkpatch, str(patch)], tree.source)
    run(["git", "am", "--quiet", str(patch)], tree.source)


@pytest.mark.boots_again("the kernel is none of the cache's")
def test_each_patch_builds_and_boots_and_the_last_passes_the_tests_of_k2(
    tree: Tree, work: Path
) -> None:
    build_helpers()
    for patch in tree.patches:
        apply(tree, patch)
        if patch == tree.patches[0]:
            tree.configure("m")
            assert tree.checked() == []
            tree.configure("y")
            tree.make("-j2", "linux", "modules_prepare", "modules")
        assert tree.checked() == [], patch.name
        tree.make("-j2", "linux")
        boot = work / patch.stem
        boot.mkdir()
        result = tree.target().boot(request_of(HERE / "passes_io.sh", RELEASE, boot))
        assert result.exit_status == 0, f"{patch.name}: {result.output[-3000:]}"
        print(f"{patch.name}: {result.output.splitlines()[-1]}", flush=True)
    assert failing_scripts(tree, work) == {}
    tree.configure("m")
    assert tree.checked() == []
    tree.make("-j2", "modules")


def failing_scripts(tree: Tree, work: Path) -> dict[str, str]:
    """The scripts of tests/kernel for k2 that fail, and what they printed."""
    failed = {}
    for script in sorted(SCRIPTS.glob("k2_*.sh")):
        if not is_for(script, RELEASE) or header(script).get("FLAVOUR") == "debug":
            continue
        only_module = any(text in script.read_text() for text in ONLY_MODULE)
        if only_module or script.stem == FAILS:
            continue
        folder = work / script.stem
        folder.mkdir()
        try:
            result = tree.target().boot(request_of(script, RELEASE, folder))
        except (BootError, RunError) as error:
            failed[script.stem] = str(error)[-1000:]
            continue
        if result.exit_status not in (0, 77):
            failed[script.stem] = result.output[-1000:]
    return failed
