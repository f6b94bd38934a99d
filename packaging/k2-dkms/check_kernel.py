#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whether a module may be built for a kernel with the private headers that this package ships.

    check_kernel.py k2|chario RELEASE HEADERS

RELEASE is what `uname -r` prints, HEADERS the folder that modules are built against. Exit status 0:
yes. 1: no, and one sentence says why.

The private headers are of one version of each series. A kernel of another version may differ, and a
module that was compiled with wrong headers damages memory. The type information (BTF) of the target
kernel has the members, offsets and types of the structures in those headers, and the prototypes of
exported functions. A compiler compares them with the headers, in that kernel's configuration.
Without BTF the version must be the same.
"""

from __future__ import annotations

import lzma
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The headers that each module includes; they include others of their folder.
INCLUDED = {
    "k2": ("block", ("elevator.h", "blk.h", "blk-mq.h", "blk-mq-sched.h", "blk-mq-debugfs.h")),
    "chario": ("mmc", ("core.h", "bus.h", "card.h", "host.h", "mmc_ops.h", "quirks.h")),
}
MAGIC = struct.pack("<HBBI", 0xEB9F, 1, 0, 24)
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(12, 20)
# Bytes behind a type's head: fixed, and for each of its members.
TAIL = {INT: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
EACH = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
KEYWORDS = {STRUCT: "struct ", UNION: "union ", ENUM: "enum ", ENUM64: "enum "}


class RefusedError(Exception):
    """Why a module is not built."""


class Btf:
    """The types of a kernel, or of one of its modules on top of the kernel's."""

    def __init__(self, data: bytes, base: Btf | None = None) -> None:
        start = _find(data)
        types_at, types_bytes, strings_at, strings_bytes = struct.unpack_from(
            "<4I", data, start + 8
        )
        begin = start + 24
        text = data[begin + strings_at : begin + strings_at + strings_bytes]
        self.strings: bytes = (base.strings if base else b"") + text
        self.types: list[tuple[int, int, int, int, tuple[int, ...]]] = (
            list(base.types) if base else [(0, 0, 0, 0, ())]
        )
        at, end = begin + types_at, begin + types_at + types_bytes
        while at < end:
            name, info, size = struct.unpack_from("<3I", data, at)
            kind, count = info >> 24 & 31, info & 0xFFFF
            tail = TAIL.get(kind, 0) + EACH.get(kind, 0) * count
            numbers = struct.unpack_from(f"<{tail // 4}I", data, at + 12)
            self.types.append((kind, name, info >> 31, size, numbers))
            at += 12 + tail

    def text(self, offset: int) -> str:
        """A name."""
        return self.strings[offset : self.strings.index(b"\0", offset)].decode()

    def named(self, kind: int) -> Iterator[tuple[int, str]]:
        """Number and name of each type of a kind."""
        for number, (found, name, *_) in enumerate(self.types):
            if found == kind and name:
                yield number, self.text(name)

    def declare(self, number: int, inner: str = "") -> str | None:
        """A type in C, around a declarator; None if it has no name to be written with."""
        kind, name, _, size, numbers = self.types[number]
        if number == 0:
            return f"void {inner}"
        if kind in (INT, FLOAT, TYPEDEF):
            return f"{self.text(name)} {inner}"
        if kind in (STRUCT, UNION, ENUM, ENUM64, FWD):
            keyword = ("union " if self.types[number][2] else "struct ") if kind == FWD else None
            return f"{keyword or KEYWORDS[kind]}{self.text(name)} {inner}" if name else None
        if kind == PTR:
            return self.declare(size, f"(*{inner})" if self._binds_tighter(size) else f"*{inner}")
        if kind in (CONST, VOLATILE):
            return self.declare(size, f"{'const' if kind == CONST else 'volatile'} {inner}")
        if kind in (RESTRICT, TYPE_TAG):
            return self.declare(size, inner)
        if kind == ARRAY:
            return self.declare(numbers[0], f"{inner}[{numbers[2] or ''}]")
        return self._function(size, numbers, inner) if kind == FUNC_PROTO else None

    def declare_per_cpu(self, number: int) -> str | None:
        """The same as a pointer to data of each CPU, if it is a pointer.

        Since gcc 14 that is a type of its own in C, while the type information has a plain one.
        """
        kind, _, _, size, _ = self.types[number]
        return self.declare(size, "__percpu *") if kind == PTR else None

    def _binds_tighter(self, number: int) -> bool:
        while self.types[number][0] in (CONST, VOLATILE, RESTRICT, TYPE_TAG):
            number = self.types[number][3]
        return self.types[number][0] in (ARRAY, FUNC_PROTO)

    def _function(self, returns: int, numbers: tuple[int, ...], inner: str) -> str | None:
        words = ["..." if not kind else self.declare(kind) for kind in numbers[1::2]]
        if None in words:
            return None
        return self.declare(returns, f"{inner}({', '.join(map(str, words)) or 'void'})")

    def members(
        self, number: int, before: str = "", bits: int = 0
    ) -> Iterator[tuple[str, int, int, bool]]:
        """Path, type, offset in bits and whether it is a bit field, of each named member."""
        _, _, has_bit_fields, _, numbers = self.types[number]
        for name, kind, offset in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            width, offset = (offset >> 24, offset & 0xFFFFFF) if has_bit_fields else (0, offset)
            if name:
                yield before + self.text(name), kind, bits + offset, bool(width)
            if self.types[kind][0] in (STRUCT, UNION) and not self.types[kind][1]:
                path = f"{before}{self.text(name)}." if name else before
                yield from self.members(kind, path, bits + offset)


def _find(data: bytes) -> int:
    at = data.find(MAGIC)
    while at >= 0:
        types_at, types_bytes, strings_at = struct.unpack_from("<3I", data, at + 8)
        if types_at == 0 and strings_at == types_bytes:
            return at
        at = data.find(MAGIC, at + 1)
    raise RefusedError("it has no type information")


def defined_structures(headers: str) -> set[str]:
    """Names of the structures whose members the headers declare."""
    # elevator_queue, which differs between releases, has its brace on a line of its own.
    return set(re.findall(r"^struct (\w+)\s*\{", headers, re.MULTILINE))


def assertions(btf: Btf, headers: str, exported: set[str]) -> list[str]:
    """What must hold for the headers' structures and functions, in C."""
    lines = [f"struct {name};" for name in sorted({name for _, name in btf.named(STRUCT)})]
    structures = defined_structures(headers)
    for number, name in btf.named(STRUCT):
        if name in structures:
            lines += _structure(btf, number, name)
    # Declared there, not called in a function's body.
    declared = re.findall(r"^(?!static|#)[a-z][^;{=(]*?\b(\w+)\(", headers, re.MULTILINE)
    functions = set(declared) & exported
    for number, name in btf.named(FUNC):
        prototype = btf.declare(btf.types[number][3], "(*)") if name in functions else None
        if prototype:
            lines.append(_same_type(f"&{name}", [prototype], f"function {name}"))
    return lines


def _structure(btf: Btf, number: int, name: str) -> list[str]:
    whole = f"struct {name}"
    lines = [_assert(f"sizeof({whole}) == {btf.types[number][3]}", whole)]
    for path, kind, bits, is_bit_field in btf.members(number):
        what = f"{whole}, member {path}"
        member = f"(({whole} *)0)->{path}"
        if is_bit_field:
            lines.append(_assert(f"sizeof({member} + 0) > 0", what))
            continue
        lines.append(_assert(f"__builtin_offsetof({whole}, {path}) == {bits // 8}", what))
        declared = list(filter(None, (btf.declare(kind), btf.declare_per_cpu(kind))))
        if declared:
            lines.append(_same_type(member, declared, what))
    return lines


def _same_type(value: str, declared: Sequence[str], what: str) -> str:
    """It is one of the declared types."""
    equal = (f"__builtin_types_compatible_p(__typeof__({value}), {one})" for one in declared)
    return _assert(" || ".join(equal), what)


def _assert(condition: str, what: str) -> str:
    # On one line, which the compiler names also where a member is missing.
    return f'_Static_assert({condition}, "{what}");'


def compare(module: str, btf: Btf, headers: Path, private: Path) -> None:
    """Compile the assertions as the module will be compiled; raises RefusedError."""
    folder, names = INCLUDED[module]
    text = "\n".join(path.read_text() for path in sorted((private / folder).glob("*.h")))
    symbols = (headers / "Module.symvers").read_text().splitlines()
    lines = ["#include <linux/blkdev.h>", "#include <linux/mmc/host.h>"]
    lines += [f'#include "{name}"' for name in names]
    lines += assertions(btf, text, {line.split("\t")[1] for line in symbols})
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "layout.c")
        source.write_text("\n".join(lines) + "\n")
        Path(place, "Kbuild").write_text(f"obj-m := layout.o\nccflags-y := -I{private / folder}\n")
        command = ["make", "-C", str(headers), f"M={place}", "layout.o"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    error = re.search(r"layout\.c:(\d+):.*error: (.*)", done.stderr)
    if not error:
        raise RefusedError(f"the comparison with the headers failed ({done.stderr.strip()[-200:]})")
    named = re.search(r'"([^"]*)"\);$', lines[int(error[1]) - 1])
    raise RefusedError(f"{named[1] if named else error[2]} is another than in those headers")


def type_information(module: str, release: str, headers: Path) -> Btf | None:
    """The types of the kernel that is built for; None if no file has them.

    Raises RefusedError where the package that has them is not installed.
    """
    base = _kernel_types(release, headers)
    if base is None or module == "k2":
        return base
    folder = Path("/lib/modules", release, "kernel/drivers/mmc/core")
    for name in ("mmc_core.ko", "mmc_core.ko.xz"):
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            return Btf(lzma.decompress(data) if name.endswith(".xz") else data, base)
    return None


def _kernel_types(release: str, headers: Path) -> Btf | None:
    if (headers / "vmlinux").is_file():
        return Btf((headers / "vmlinux").read_bytes())
    image = Path("/boot", f"vmlinuz-{release}")
    if not image.is_file():
        raise RefusedError(
            f"{image} is missing, whose type information is compared; install "
            f"linux-image-{release}, then run dkms autoinstall -k {release}"
        )
    data = image.read_bytes()
    at = data.find(b"\xfd7zXZ\0")
    return Btf(lzma.LZMADecompressor().decompress(data[at:])) if at >= 0 else None


def package_version(headers: Path) -> str:
    """The version of the distribution's package, such as 6.1.176-1; its last word."""
    for name in ("package.h", "compile.h"):
        file = headers / "include/generated" / name
        found = re.search(
            r'LINUX_PACKAGE_ID ".* (\S+)"', file.read_text() if file.is_file() else ""
        )
        if found:
            return found[1]
    return "of no distribution"


def series(headers: Path) -> str:
    """Version and patch level, such as 6.12."""
    text = (headers / "include/generated/uapi/linux/version.h").read_text()
    numbers = dict(re.findall(r"#define LINUX_VERSION_(MAJOR|PATCHLEVEL) (\d+)", text))
    return f"{numbers['MAJOR']}.{numbers['PATCHLEVEL']}"


def check(module: str, release: str, headers: Path, shipped: Path) -> None:
    """Raise RefusedError unless the module may be built."""
    private = shipped / series(headers)
    if not private.is_dir():
        known = " and ".join(sorted(path.name for path in shipped.iterdir()))
        raise RefusedError(f"it was checked with Linux {known} only")
    version, tested = package_version(headers), (private / "version").read_text().strip()
    if version == tested:
        return
    try:
        btf = type_information(module, release, headers)
        if btf is None:
            raise RefusedError(
                "neither its headers nor its image have type information that I can read"
            )
        compare(module, btf, headers, private)
    except RefusedError as refusal:
        versions = f"its version is {version}, the private headers are of {tested}"
        raise RefusedError(f"{versions}, and {refusal}") from refusal


def main() -> int:
    """The command."""
    module, release, headers = sys.argv[1:]
    try:
        check(module, release, Path(headers), HERE / "private")
    except RefusedError as refusal:
        print(f"{module} is not built for {release}: {refusal}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
