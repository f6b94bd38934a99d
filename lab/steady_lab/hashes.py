# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hashes of files: the keys of builds and results."""

import hashlib
from pathlib import Path


def sha256_file(path: Path) -> str:
    """The hash of a file's content, as hexadecimal digits; raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
