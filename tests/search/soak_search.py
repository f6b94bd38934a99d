# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each planted fault, shrunk to a line that replays; some minutes, so `make soak` runs it."""

from pathlib import Path

import pytest
from steady_lab.kernels.build import LabKernel
from steady_lab.search.case import parse
from test_search import PLANTED, search


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_is_shrunk_to_a_line_that_replays(
    kind: str, base_kernel: LabKernel, work: Path
) -> None:
    looking = search(base_kernel, work)
    (boot,) = looking.boot([PLANTED[kind]])
    found = looking.shrink(boot)
    print(found.case.line())
    (again,) = looking.boot([parse(found.case.line())])
    # The text of a kernel's trouble names the folder of its boot.
    assert again.findings[0].kind == found.findings[0].kind == kind
