# SPDX-License-Identifier: MIT OR Apache-2.0
"""The record on the number in flight has the values of the SSD model; two of its tables."""

import pytest
from ssd_bounds import PART, RECORD, case_table
from steady_lab.devices.ssd_load import build
from steady_lab.pages.recorded_tables import read_tables, table_name

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")


@pytest.mark.parametrize(
    ("state", "operation"),
    [
        ("half full", "random read"),
        pytest.param(
            "full", "random write", marks=pytest.mark.nightly("a change of garbage collection")
        ),
    ],
)
def test_the_record_has_what_k2_and_fixed_numbers_give(state: str, operation: str) -> None:
    build()
    table = case_table(state, operation)
    assert read_tables(RECORD)[table_name(PART, table.caption)] == table
