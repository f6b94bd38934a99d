# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the boots are that a test, or a group of them, has passed with; see conftest.py."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from steady_lab.paths import cache_dir
from steady_lab.targets import kept_boots

# For a test's item: the folder of the boots that decide whether it is "cached".
USED = pytest.StashKey[Path]()


@dataclass
class Boots:
    """`folder`: None if nothing is kept. The user sets `passed`."""

    folder: Path | None
    passed: bool = False


def kept_folder() -> Path:
    """Return where all tests' boots are kept."""
    return cache_dir() / "boots"


@contextmanager
def boots_of(name: str, patch: pytest.MonkeyPatch) -> Iterator[Boots]:
    """Replay the boots that `name` has passed with before, and keep new ones if it passes."""
    if os.environ.get("STEADYIO_TEST_CACHE") == "0":
        yield Boots(None)
        return
    folder = kept_folder() / hashlib.sha256(name.encode()).hexdigest()[:16]
    boots = Boots(folder)
    kept_boots.begin(folder)
    with patch.context() as inner:
        inner.setenv(kept_boots.FOLDER_VARIABLE, str(folder))
        try:
            yield boots
        finally:
            kept_boots.settle(folder, boots.passed)
