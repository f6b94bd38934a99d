# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all tests share: lab kernels, a work folder below build/tests, and the boots of before.

A test whose boots were all replayed is "cached" (steady_lab/targets/kept_boots.py). With
STEADYIO_TEST_CACHE=0 nothing is replayed or kept; `@pytest.mark.boots_again("reason")` says so of
one test.
"""

import os
import re
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import order
import pytest
import verdicts
from boots import USED, boots_of, kept_folder
from hypothesis import HealthCheck, settings
from steady_lab.kernels.build import LabKernel, build_kernel
from steady_lab.kernels.source import find_source
from steady_lab.paths import BUILD
from steady_lab.targets import kept_boots
from time_limit import time_limit

# A shell starts background jobs with SIGINT ignored, and so would be every program started here;
# tests that press Ctrl-C need it as it is in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes, or making it, says something about the machine only. The examples are
# the same each time: a test fails because of the change under test.
settings.register_profile(
    "steadyio",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steadyio")


@pytest.fixture(scope="session")
def base_kernel() -> LabKernel:
    return build_kernel(find_source(), "base")


@pytest.fixture
def work(request: pytest.FixtureRequest) -> Path:
    """An empty folder named after the test; kept afterwards, to look at."""
    folder = BUILD / "tests" / "work" / re.sub(r"[^\w.-]+", "_", request.node.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


PASSED = pytest.StashKey[bool]()
CACHED = ("result", "cached")
KEY, FOLDERS = "verdict's key", "verdict's folders"
IS_CACHE_USED = os.environ.get("STEADYIO_TEST_CACHE") != "0"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test passed, and whether all its boots were replayed; a skipped one did not."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
        if report.passed:
            report.user_properties += properties(item)
    return report


def properties(item: pytest.Item) -> list[tuple[str, object]]:
    """Say of a test that passed whether it is cached, else by which key its verdict is kept."""
    if isinstance(item, verdicts.KeptTest):
        return [CACHED]
    if key := verdicts.key_of_test(item):
        return [(KEY, key), (FOLDERS, verdicts.folders_of(item))]
    replayed, ran = kept_boots.used(item.stash[USED]) if USED in item.stash else (0, 0)
    return [CACHED] if replayed and not ran else []


@pytest.fixture(autouse=True)
def replayed_boots(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Generator[None, None, None]:
    """Replay the boots that this test has passed with before, and keep new ones if it passes."""
    if request.node.get_closest_marker("boots_again"):
        yield
        return
    with boots_of(request.node.nodeid, monkeypatch) as boots:
        if boots.folder:
            request.node.stash[USED] = boots.folder
        yield
        boots.passed = request.node.stash.get(PASSED, False)


def is_cached(report: pytest.TestReport) -> bool:
    """Whether all boots of the test were replayed; xdist makes lists of the pairs."""
    return CACHED in [tuple(one) for one in report.user_properties]


SECONDS: dict[str, float] = {}
VERDICTS: dict[str, tuple[str, tuple[str, ...]]] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Give the workers one order; the main process starts before them."""
    if not hasattr(config, "workerinput"):
        order.take_copy()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> order.ByGroup:
    """Choose how tests are distributed to the workers."""
    return order.ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the tests whose verdict is kept, and sort them all."""
    if IS_CACHE_USED:
        for index, item in enumerate(items):
            if item.parent and verdicts.is_kept(item):
                kept = verdicts.KeptTest.from_parent(item.parent, name=item.name)
                kept.own_markers = item.own_markers
                items[index] = kept
    order.longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """See to it that a test whose verdict is kept names what it reads."""
    with verdicts.watched(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """See to it that the test ends, and names what it reads if its verdict is kept."""
    with time_limit(), verdicts.watched(item):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep how long the tests took, and the verdicts; limit the kept boots."""
    if not hasattr(session.config, "workerinput"):
        order.keep(SECONDS)
        if IS_CACHE_USED:
            verdicts.keep(VERDICTS)
            kept_boots.limit(kept_folder())


def pytest_report_teststatus(report: pytest.TestReport) -> Any:
    """Count the tests apart whose boots were all replayed."""
    if report.when == "call" and is_cached(report):
        return "cached", "c", "CACHED"
    return None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took, and tell scripts/test of a skipped one, once."""
    if report.passed and report.when == "call" and not is_cached(report):
        SECONDS[report.nodeid] = round(report.duration, 2)
    said: dict[str, Any] = dict(report.user_properties)
    if KEY in said:
        VERDICTS[report.nodeid] = (said[KEY], tuple(said[FOLDERS]))
    skips = os.environ.get("STEADYIO_SKIPS")
    if not report.skipped or not skips or "PYTEST_XDIST_WORKER" in os.environ:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    with Path(skips).open("a", encoding="utf-8") as file:
        file.write(f"{report.nodeid}\t{reason.removeprefix('Skipped: ')}\n")
