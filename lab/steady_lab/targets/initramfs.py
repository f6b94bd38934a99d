# SPDX-License-Identifier: MIT OR Apache-2.0
"""The initramfs of a guest under QEMU: a cpio archive in the format "newc" (see cpio(5))."""

from __future__ import annotations

import stat
from collections.abc import Mapping

_TRAILER = "TRAILER!!!"


def initramfs(files: Mapping[str, bytes], folders: tuple[str, ...]) -> bytes:
    """Return an archive of `folders` and of `files`, by path without a leading slash.

    All are root's and executable; the same content gives the same bytes.
    """
    entries = [(folder, stat.S_IFDIR | 0o755, b"") for folder in folders]
    entries += [(path, stat.S_IFREG | 0o755, content) for path, content in files.items()]
    entries.append((_TRAILER, 0, b""))
    return b"".join(_entry(number, *entry) for number, entry in enumerate(entries, 1))


def _entry(number: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    # inode, mode, uid, gid, links, mtime, size, device (2), of a node (2), length of name, sum
    numbers = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % value for value in numbers)
    return _padded(head + name) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
