# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands of a character device are calculable, those of ext4 are not."""

from dataclasses import replace
from pathlib import Path

import pytest
from steady_lab.errors import LabError
from steady_lab.figures.direct_path import FRAGMENTED, Case, Result, measure_on_card
from steady_lab.figures.direct_path_spec import load_direct_path
from steady_lab.figures.direct_stages import stages_of
from steady_lab.pages.direct_path import missed
from steady_lab.targets.uml import uml

SPEC = load_direct_path()
WAYS = {way.name: way for way in (*SPEC.ways, *FRAGMENTED)}
BLOCKS_PER_MIB = 256


def result(way: str, *, took: int, commands: int) -> Result:
    return Result(
        Case(WAYS[way], "read", 1024, 1, "sequential"), took, commands, commands, commands
    )


def test_small_cases_on_a_lab_kernel(work: Path) -> None:
    sequential = [
        Case(WAYS[name], op, kib, 8, "sequential")
        for name in ("char", "char-registered", "block-direct", "ext4-direct")
        for op in ("read", "write")
        for kib in (4, 1024)
    ]
    fragmented = Case(WAYS["fragmented-direct"], "read", 1024, 4, "random")
    results = measure_on_card(uml(), SPEC.device, [*sequential, fragmented], work)
    assert missed(results) == []
    by_case = {result.case: result for result in results}
    assert by_case[fragmented].least >= BLOCKS_PER_MIB, "each block is apart from the next"
    ext4 = by_case[Case(WAYS["ext4-direct"], "write", 4, 8, "sequential")]
    assert ext4.commands > ext4.case.calls, "the file system writes, too"


def test_other_commands_than_calculated_are_reported() -> None:
    assert missed([result("char", took=100, commands=2)]) == []
    (line,) = missed([result("char", took=100, commands=3)])
    assert "3 commands, not 2" in line


def test_a_character_device_slower_than_o_direct_is_reported() -> None:
    char, direct = (
        result("char", took=1000, commands=2),
        result("block-direct", took=1000, commands=2),
    )
    assert missed([char, direct]) == []
    (line,) = missed([replace(char, took=1020), direct])
    assert line.startswith("char, read of 1024 KiB")


# As in the kernel's trace, without fields that no test reads.
CALL = """\
          caller-160     [000] .....  {0}000: sys_enter: NR 17 (3, 55f1, a000, 8c000, 1a04, 0)
          caller-160     [000] .....  {0}110: mmc_request_start: mmc0: start struct mmc_request
          caller-160     [000] d.h1.  {0}200: irq_handler_entry: irq=10 name=mmc0
          caller-160     [000] d.h1.  {0}300: irq_handler_entry: irq=3 name=ttyS1
          caller-160     [000] d.h1.  {0}500: irq_handler_entry: irq=10 name=mmc0
          caller-160     [000] d.h1.  {0}520: mmc_request_done: mmc0: end struct mmc_request
          caller-160     [000] .....  {0}620: sys_exit: NR 17 = 40960
"""


def test_a_reads_stages_are_those_between_its_marks() -> None:
    case = Case(WAYS["char"], "read", 40, 2, "sequential")
    other = CALL.format(1).replace("mmc_request_start", "something_else")
    trace = other + CALL.format(2) + CALL.format(3)
    stages = stages_of(case, trace)
    # From the last interrupt of the card on.
    assert (stages.parts, stages.calls) == ((110, 20, 100), 2)
    with pytest.raises(LabError, match="1 calls of one command"):
        stages_of(case, other + CALL.format(2))
    # Read-ahead has brought the data of the other one.
    assert stages_of(replace(case, way=WAYS["ext4"]), other + CALL.format(2)).calls == 1
