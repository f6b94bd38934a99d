# SPDX-License-Identifier: MIT OR Apache-2.0
"""The line of progress."""

from io import StringIO

from steady_lab.progress import Progress


def line(total: int, done: int) -> str:
    stream = StringIO()
    progress = Progress("boots", total, stream=stream, quiet_s=0.0)
    progress.shown_s -= 60
    progress.update(done, "last")
    return stream.getvalue()


def test_a_known_total_is_shown_and_the_time_left() -> None:
    assert line(4, 1) == "boots: 1/4, 0 s, about 0 s left  last\n"


def test_of_an_unknown_total_the_number_is_shown() -> None:
    assert line(0, 12) == "boots: 12, 0 s  last\n"


def test_an_estimate_that_was_too_small_is_not_exceeded() -> None:
    assert line(4, 5) == "boots: 4/4, 0 s  last\n"
