# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which part of the kernel an executed instruction belongs to.

tests/bench/step.c writes how often each address was executed; here addresses become functions, and
functions parts: a folder of the kernel's source, a scheduler, or a module.
"""

from __future__ import annotations

import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError

# Object files in block/ that are schedulers.
SCHEDULER_OBJECTS = ("mq-deadline", "kyber-iosched", "bfq-")
# Modules are below, the C library is above.
MODULES_END = 0xA0000000
OBJECTS_AT_ONCE = 500


@dataclass(frozen=True)
class Function:
    """A function and the part of the kernel that it is in."""

    address: int
    name: str
    part: str


@dataclass(frozen=True)
class Window:
    """The execution between two marks, by function: instructions, and how often entered."""

    executed: Counter[Function]
    entered: Counter[str]


class Functions:
    """Finds the function that an address is in."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions = sorted(functions, key=lambda function: function.address)
        self._addresses = [function.address for function in self._functions]

    def find(self, address: int) -> Function:
        """Return the function at or before an address; a part "host" for the C library."""
        at = bisect_right(self._addresses, address) - 1
        if at < 0 or address >= MODULES_END:
            return Function(0, "", "host")
        return self._functions[at]


def kernel_functions(tree: Path) -> list[Function]:
    """Return the functions of a built kernel, in the order of their addresses.

    System.map has no files, and static functions of the same name are in several. The linker puts
    the functions of a file together, so the function before identifies the file.
    """
    files = _files_of_functions(tree)
    functions = []
    file = ""
    for line in (tree / "System.map").read_text(encoding="utf-8").splitlines():
        address, kind, name = line.split()[:3]
        if kind not in "tT":
            continue
        candidates = files.get(name, [])
        if file not in candidates:
            file = candidates[0] if candidates else ""
        functions.append(Function(int(address, 16), name, _part(file)))
    return functions


def module_functions(module: Path, part: str, text_address: int) -> list[Function]:
    """Return the functions of a module whose .text was loaded at an address."""
    functions = []
    for line in _nm("--format=sysv", str(module)):
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[2] in "tT" and fields[6] == ".text":
            functions.append(Function(text_address + int(fields[1], 16), fields[0], part))
    return functions


def read_windows(counts: Path, functions: Functions) -> Iterator[Window]:
    """Read what step.c wrote, one window after the other."""
    executed: Counter[Function] | None = None
    entered: Counter[str] = Counter()
    for line in counts.read_text(encoding="ascii").splitlines():
        first, second = line.split()
        if first == "window":
            if executed is not None:
                yield Window(executed, entered)
            executed, entered = Counter(), Counter()
            continue
        if executed is None:
            raise LabError(f"{counts}: does not begin with a window")
        address = int(first, 16)
        function = functions.find(address)
        executed[function] += int(second)
        if address == function.address:
            entered[function.name] += int(second)
    if executed is not None:
        yield Window(executed, entered)


def _files_of_functions(tree: Path) -> dict[str, list[str]]:
    objects = [
        str(path)
        for path in sorted(tree.rglob("*.o"))
        if not path.name.endswith((".mod.o", "vmlinux.o", "built-in.o"))
    ]
    files: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(objects), OBJECTS_AT_ONCE):
        for line in _nm("-A", *objects[start : start + OBJECTS_AT_ONCE]):
            path, _, rest = line.partition(":")
            fields = rest.split()
            if len(fields) == 3 and fields[1] in "tT":
                files[fields[2]].append(str(Path(path).relative_to(tree)))
    return files


def _nm(*arguments: str) -> list[str]:
    done = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"nm failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def _part(file: str) -> str:
    folder, _, name = file.partition("/")
    if folder == "block" and name.startswith(SCHEDULER_OBJECTS):
        return "scheduler"
    return folder
