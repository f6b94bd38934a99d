# SPDX-License-Identifier: MIT OR Apache-2.0
"""step.c counts a program of which the number of instructions is known."""

import subprocess
from pathlib import Path

from steady_lab.paths import PROJECT

SOURCES = PROJECT / "tests" / "bench"
STATUS = 7
LOOPS = 1000
PROGRAM = """
static char from[4096], to[4096];

__attribute__((noinline)) void mark(void)
{
    __asm__ volatile("nop");
}

int main(void)
{
    mark();
    __asm__ volatile("mov $LOOPS, %%rcx\\n1: dec %%rcx\\njnz 1b" : : : "rcx", "cc");
    mark();
    mark();
    __asm__ volatile("mov %0, %%rsi\\nmov %1, %%rdi\\nmov $4096, %%rcx\\nrep movsb"
                     : : "r"(from), "r"(to) : "rsi", "rdi", "rcx", "memory");
    mark();
    return STATUS;
}
"""


def compiled(source: Path, *flags: str) -> Path:
    program = source.parent / source.stem
    subprocess.run(["gcc", "-O2", *flags, "-o", str(program), str(source)], check=True)
    return program


def counted(work: Path) -> list[dict[int, int]]:
    """Count the program's two windows; each maps addresses to how often they were executed."""
    source = work / "program.c"
    source.write_text(PROGRAM.replace("LOOPS", str(LOOPS)).replace("STATUS", str(STATUS)))
    program = compiled(source, "-no-pie")
    (work / "step.c").write_text((SOURCES / "step.c").read_text())
    step = compiled(work / "step.c")
    symbols = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True)
    mark = next(line.split()[0] for line in symbols.stdout.splitlines() if line.endswith(" mark"))
    counts = work / "counts"
    done = subprocess.run(
        [str(step), str(counts), mark, "setarch", "-R", str(program)], timeout=60, check=False
    )
    assert done.returncode == STATUS, "step ends as the program does, also through an exec"
    windows: list[dict[int, int]] = []
    for line in counts.read_text().splitlines():
        first, second = line.split()
        if first == "window":
            windows.append({})
        else:
            windows[-1][int(first, 16)] = int(second)
    return windows


def test_counts_each_instruction_once(work: Path) -> None:
    loop, copy = counted(work)
    assert sorted(loop.values(), reverse=True)[:3] == [LOOPS, LOOPS, 1]
    # The loop's start, and mark() and the calls of it.
    assert sum(loop.values()) - 2 * LOOPS < 12
    assert set(copy.values()) == {1}, "an instruction with a repeat prefix is one"
    assert 5 <= len(copy) < 15
