#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Write k2 as a patch series for the block layer of a kernel tree: `make kernel-patches TREE=DIR`.

The series is made for the newest release that the module knows. Each folder of stages/ is a patch:
sources.py makes its files of the module's, and `message` is its commit message.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sources import UPSTREAM, SeriesError, Stage, derived, files_at, stages

PROJECT = UPSTREAM.parents[1]
RELEASE = "7.3"
HOME = "block/k2"
# The tree's files that the series changes.
CHANGED = (
    *("block/Kconfig", "block/Kconfig.iosched", "block/Makefile", "MAINTAINERS"),
    "Documentation/block/index.rst",
)
# Before these lines of the tree.
KCONFIG_PLACE = "config IOSCHED_BFQ\n"
MAKEFILE_PLACE = "bfq-y\t\t\t\t:= "
MAINTAINERS_PLACE = "K10TEMP HARDWARE MONITORING DRIVER\n"
SPLIT_PLACE = 'source "block/Kconfig.iosched"\n'
INDEX_PLACE = "   kyber-iosched\n"


def tree_files(stage: Stage, before: Mapping[str, str], author: str) -> dict[str, str]:
    """Every file that the series adds or changes, at a stage; `before` has the tree's own."""
    number = stage.number
    files = dict(before)
    files |= {f"{HOME}/{name}": text for name, text in files_at(number).items()}
    objects = sorted(name[:-2] for name in files_at(number) if name.endswith(".c"))
    files[f"{HOME}/Makefile"] = _makefile(objects)
    files["block/Makefile"] = _inserted(
        before["block/Makefile"], MAKEFILE_PLACE, "obj-$(CONFIG_MQ_IOSCHED_K2)\t+= k2/\n"
    )
    kconfig = (UPSTREAM / "Kconfig").read_text()
    maintainers = (UPSTREAM / "MAINTAINERS").read_text().replace("@AUTHOR@", author)
    if number >= 2:
        files |= _split_helper(before, files["block/Makefile"])
        maintainers = _inserted(maintainers, "F:\tblock/k2/", "F:\tblock/blk-mq-split.*\n")
    if number < 3:
        kconfig = kconfig.replace("\tselect BLK_MQ_SPLIT\n", "")
    for name, place, text in (
        ("block/Kconfig.iosched", KCONFIG_PLACE, f"{kconfig}\n"),
        ("MAINTAINERS", MAINTAINERS_PLACE, f"{maintainers}\n"),
        ("Documentation/block/index.rst", INDEX_PLACE, "   k2-iosched\n"),
    ):
        files[name] = _inserted(before[name], place, text)
    files["Documentation/block/k2-iosched.rst"] = _together(number, "k2-iosched.rst")
    abi = _together(number, "sysfs-block-k2").replace("@AUTHOR@", author)
    files["Documentation/ABI/testing/sysfs-block-k2"] = abi
    return files


def _makefile(objects: list[str]) -> str:
    lines = ["# SPDX-License-Identifier: GPL-2.0-only", "obj-$(CONFIG_MQ_IOSCHED_K2) += k2.o", ""]
    always = [f"{name}.o" for name in objects if name != "debugfs"]
    words = "k2-y :="
    for name in always:
        if len(f"{words} {name}") > 78:
            lines.append(words)
            words = "k2-y +="
        words += f" {name}"
    lines += [words, "k2-$(CONFIG_BLK_DEBUG_FS) += debugfs.o", ""]
    lines += ["# For the trace events", "CFLAGS_main.o := -I$(src)"]
    return "\n".join(lines) + "\n"


def _split_helper(before: Mapping[str, str], makefile: str) -> dict[str, str]:
    (stage,) = (stage for stage in stages() if stage.number == 2)
    option = "config BLK_MQ_SPLIT\n\tbool\n\n"
    line = "obj-$(CONFIG_BLK_MQ_SPLIT)\t+= blk-mq-split.o\n"
    return {
        "block/blk-mq-split.h": stage.own("blk-mq-split.h").read_text(),
        "block/blk-mq-split.c": stage.own("blk-mq-split.head.c").read_text() + derived(stage),
        "block/Kconfig": _inserted(before["block/Kconfig"], SPLIT_PLACE, option),
        "block/Makefile": _inserted(makefile, "obj-$(CONFIG_MQ_IOSCHED_K2)", line),
    }


def _together(number: int, name: str) -> str:
    """The sections of a document that the stages up to this one add."""
    texts = [stage.own(name) for stage in stages() if stage.number <= number]
    return "\n".join(path.read_text() for path in texts if path.exists())


def _inserted(text: str, place: str, new: str) -> str:
    if text.count(place) != 1:
        raise SeriesError(
            f"the tree has {place.strip()!r} {text.count(place)} times where the series adds to "
            f"it, expected once: it is made for Linux {RELEASE}"
        )
    return text.replace(place, new + place)


def git(repository: Path, *arguments: str) -> str:
    """Run git in a repository; returns what it printed."""
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SeriesError(f"git {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout


def identity() -> tuple[str, str]:
    """The name and address that sign the patches off."""
    values = []
    for key in ("user.name", "user.email"):
        done = subprocess.run(["git", "config", key], capture_output=True, text=True, cwd=UPSTREAM)
        if not done.stdout.strip():
            raise SeriesError(f"git has no {key} to sign off with: git config --global {key} ...")
        values.append(done.stdout.strip())
    return values[0], values[1]


def read_tree(tree: Path) -> dict[str, str]:
    """Return the tree's files that the series changes."""
    try:
        head = (tree / "Makefile").read_text()
        found = {name: (tree / name).read_text() for name in CHANGED}
    except OSError as error:
        raise SeriesError(f"TREE={tree} is no kernel tree: {error}") from error
    release = ".".join(re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", head, re.MULTILINE))
    if release != RELEASE:
        raise SeriesError(f"TREE={tree} is Linux {release}, but the series is for {RELEASE}")
    if (tree / HOME).exists():
        raise SeriesError(f"TREE={tree} has {HOME} already: give a tree without the series")
    return found


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by their paths below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(repository: Path, stage: Stage, files: Mapping[str, str]) -> None:
    """Make the repository's content these files, in a commit with the stage's message."""
    for path in repository.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_files(repository, files)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--signoff", "--file", str(stage.own("message")))


def make_series(tree: Path, out: Path) -> list[Path]:
    """Write the cover letter and a patch per stage to `out`, and return their paths in order."""
    before = read_tree(tree)
    name, address = identity()
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch)
        git(repository, "init", "--quiet")
        for key, value in (("user.name", name), ("user.email", address), ("commit.gpgsign", "no")):
            git(repository, "config", key, value)
        write_files(repository, before)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message", "tree")
        for stage in stages()[1:]:
            commit(repository, stage, tree_files(stage, before, f"{name} <{address}>"))
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("0*.patch"):
            old.unlink()
        base = f"HEAD~{len(stages()) - 1}"
        options = ("--quiet", "--cover-letter", "-o", str(out.absolute()))
        git(repository, "format-patch", *options, base)
    patches = sorted(out.glob("0*.patch"))
    _write_cover(patches[0])
    return patches


def _write_cover(path: Path) -> None:
    letter = (UPSTREAM / "cover-letter").read_text()
    letter = re.sub(r"^@TABLE (\S+) (.+)@$", _tables, letter, flags=re.MULTILINE)
    subject, _, body = letter.partition("\n\n")
    text = path.read_text().replace("*** SUBJECT HERE ***", subject)
    path.write_text(text.replace("*** BLURB HERE ***", body.rstrip()))


def _tables(wanted: re.Match[str]) -> str:
    """Return the first table of a marked part of a results page, as plain text."""
    page, marker = wanted.groups()
    text = (PROJECT / page).read_text()
    found = re.search(rf"<!-- {re.escape(marker)}\b.*?\n(\|.*?)\n\n", text, re.DOTALL)
    if not found:
        raise SeriesError(f"kernel/upstream/cover-letter: {page} has no table {marker!r}")
    lines = [line for line in found[1].splitlines() if line.startswith("|")]
    rows = [line[1:-1].replace("–", "-") for line in lines]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows if "---" not in row]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    plain = []
    for first, *others in cells:
        words = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        plain.append("  ".join([f"  {first:<{widths[0]}}", *words]))
    return "\n".join(plain)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help=f"a tree of Linux {RELEASE}; it is only read")
    parser.add_argument("out", type=Path, help="the folder for the patches")
    arguments = parser.parse_args()
    try:
        patches = make_series(arguments.tree, arguments.out)
    except SeriesError as error:
        print(f"kernel-patches: {error}", file=sys.stderr)
        return 1
    print("\n".join(str(path) for path in patches))
    return 0


if __name__ == "__main__":
    sys.exit(main())
