# SPDX-License-Identifier: MIT OR Apache-2.0
"""The faults of faults.toml fit what they are planted in; `make soak` plants them (run.py)."""

import pytest
from run import PROJECT, Fault, read_faults

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_fits(fault: Fault) -> None:
    text = (PROJECT / fault.file).read_text(encoding="utf-8")
    assert fault.planted(text) != text
    assert fault.how().run


def test_names_are_different() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
