# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the system refused, as a sentence with the remedy: read-only trees, unusable caches."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
_PLACES = (errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG, errno.EISDIR)


def sentence(error: OSError) -> str | None:
    """Return file, reason and remedy; None for an error that no user has caused."""
    text = os.strerror(error.errno or 0)
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
        return f"{text} (the cache and the build directory need 10 GB)"
    if error.errno not in (*_WRITING, *_PLACES) or not isinstance(error.filename, str):
        return None
    return f"{error.filename}: {text}{_remedy(Path(error.filename), error.errno)}"


def _remedy(path: Path, number: int) -> str:
    from steady_lab.paths import PROJECT, cache_dir  # which may be what failed

    if path.absolute().is_relative_to(cache_dir()):
        return " (set STEADYIO_CACHE to a directory that you can write to)"
    if number in _WRITING and path.absolute().is_relative_to(PROJECT):
        return " (this clone must be writable: copy it to a directory that is)"
    return ""
