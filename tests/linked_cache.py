# SPDX-License-Identifier: MIT OR Apache-2.0
"""A cache of a test's own, without one part of this machine's."""

from pathlib import Path

from steady_lab.paths import cache_dir


def cache_without(part: str, folder: Path) -> Path:
    """Return a new cache in `folder` with links to all that this machine's has, except `part`."""
    cache = folder / "cache"
    cache.mkdir()
    for path in cache_dir().iterdir():
        if path.name != part:
            (cache / path.name).symlink_to(path)
    return cache
