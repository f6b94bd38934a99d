# SPDX-License-Identifier: MIT OR Apache-2.0
"""A test that waits for ever fails."""

import signal
import subprocess

import pytest
from time_limit import time_limit


def test_a_wait_for_programs_that_never_end_fails() -> None:
    command = ["sh", "-c", "sleep infinity & echo; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        with pytest.raises(TimeoutError, match=r"after 0\.2 s"), time_limit(0.2):
            shell.stdout.read()
        # The end of the pipe comes when both have ended.
        with time_limit(60):
            shell.stdout.read()
    assert shell.returncode == -signal.SIGKILL


def test_a_test_that_ends_leaves_no_limit() -> None:
    with time_limit(1000):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
