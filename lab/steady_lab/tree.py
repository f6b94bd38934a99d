# SPDX-License-Identifier: MIT OR Apache-2.0
"""The project's files that a wheel carries (scripts/wheels), unpacked once per content.

The lab builds kernels, modules and `steady` from them; in a clone they are the clone's own.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from steady_lab.hashes import sha256_file

ARCHIVE = Path(__file__).with_name("tree.tar.xz")


def unpacked(archive: Path, folder: Path) -> Path:
    """Return the archive's tree below `folder`, named after the archive's content."""
    place = folder / sha256_file(archive)[:16]
    if place.is_dir():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        tree = Path(unfinished, "tree")
        with tarfile.open(archive) as packed:
            # Python 3.11.2, which is Debian 12's, has no filters.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(tree)
        try:
            tree.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise
    return place
