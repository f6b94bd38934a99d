# SPDX-License-Identifier: MIT OR Apache-2.0
"""What happens in a guest is the same on every machine: each block event, and the clock at the end.

The hashes are committed. They change with the kernel, its configuration, the guests' root and the
emulated card, and with nothing else; `tests/reproducible/other_systems` shows the same on other
systems and processors.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import kernel_scripts
import pytest
from busy import busy_cores
from releases import KERNEL_TEST_RELEASES, LAB_RELEASE
from steady_lab.targets import guest_init as guest
from verdicts import WITHOUT_STEADY

# What another machine has passed with says nothing of this one.
pytestmark = [
    pytest.mark.boots_again("compares this machine with others"),
    pytest.mark.reads(*WITHOUT_STEADY),
]

SCRIPT = Path(__file__).parent / "events.sh"
COMMITTED = dict(
    line.split() for line in SCRIPT.with_name("events.sha256").read_text().splitlines()
)
# What the C library of the lab's own programs is to leave alone of the processor's features. Guests
# take every processor for a plain x86-64 by themselves.
PROCESSORS = {
    "x86-64": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-SSE4_2,-SSE4_1,-SSSE3,-POPCNT,-ERMS,-XSAVEC",
    "AVX2": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
    "all": "",
}


def events(release: str, work: Path) -> bytes:
    result = kernel_scripts.run(SCRIPT, release, work)
    assert result.exit_status == 0, result.output
    return (work / "events").read_bytes()


def expect_the_committed(release: str, found: bytes, work: Path) -> None:
    digest = hashlib.sha256(found).hexdigest()
    assert found.count(b"block_rq_complete") > 100
    assert digest == COMMITTED[release], (
        f"{work}/events is not what other machines have. If kernel, configuration, root or card "
        f"were changed, write {digest} for {release} into {SCRIPT.with_name('events.sha256')}."
    )


BY_NIGHT = pytest.mark.nightly("events of a newer kernel that depend on the machine")
CASES = [
    pytest.param(release, marks=[] if release == LAB_RELEASE else BY_NIGHT)
    for release in KERNEL_TEST_RELEASES
]


@pytest.mark.parametrize("release", CASES)
def test_every_event_is_as_on_other_machines(release: str, work: Path) -> None:
    expect_the_committed(release, events(release, work), work)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_events_do_not_depend_on_what_the_processor_has(
    processor: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", PROCESSORS[processor])
    expect_the_committed(LAB_RELEASE, events(LAB_RELEASE, work), work)


def test_events_do_not_depend_on_load_and_folder(work: Path) -> None:
    folder = work / "any, other name"
    with busy_cores():
        expect_the_committed(LAB_RELEASE, events(LAB_RELEASE, folder), folder)


def test_one_more_reading_of_the_clock_is_noticed(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_more = "{set_up}\nread -r up </proc/uptime\n"
    monkeypatch.setattr(guest, "_ONE", guest._ONE.replace("{set_up}\n", one_more))
    found = events(LAB_RELEASE, work)
    assert hashlib.sha256(found).hexdigest() != COMMITTED[LAB_RELEASE]
