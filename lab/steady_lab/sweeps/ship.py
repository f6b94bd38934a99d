# SPDX-License-Identifier: MIT OR Apache-2.0
"""How bundles get from the client to the scheduler's machine, from where workers fetch them."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping

from distributed import Client

from steady_lab.errors import LabError
from steady_lab.progress import Progress
from steady_lab.sweeps.bundle import archive, pack
from steady_lab.sweeps.depot import PIECE_BYTES
from steady_lab.targets.target import BootRequest, Part
from steady_lab.targets.uml_guest import UmlGuest


class Shipping:
    """Brings each bundle once, if the scheduler's machine lacks it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._parts: dict[object, Mapping[str, str]] = {}
        self._there: set[str] = set()

    def parts(self, guest: UmlGuest, request: BootRequest) -> Mapping[str, str]:
        """Return the digests of a guest's parts, by name."""
        # Boots of one kernel share them, and hashing them takes a second.
        same = (guest.kernel.tree, guest.root, guest.project, tuple(request.modules))
        if same not in self._parts:
            self._parts[same] = {part.name: self.ship(part) for part in guest.parts()}
        return self._parts[same]

    def ship(self, part: Part) -> str:
        """Return the digest of a part that the scheduler's machine has now."""
        digest = pack(part)
        if digest not in self._there:
            self._client.sync(self._bring, part.name, digest)
            self._there.add(digest)
        return digest

    async def _bring(self, name: str, digest: str) -> None:
        scheduler = self._client.scheduler
        assert scheduler is not None
        if await scheduler.steady_has(digest=digest):
            return
        total = archive(digest).stat().st_size
        progress, sender = (
            Progress(f"{name}, MB to the scheduler", max(total // 10**6, 1)),
            uuid.uuid4().hex,
        )
        with archive(digest).open("rb") as stream:
            for offset in range(0, total, PIECE_BYTES):
                progress.update(offset // 10**6)
                await scheduler.steady_bring(
                    digest=digest,
                    sender=sender,
                    offset=offset,
                    data=stream.read(PIECE_BYTES),
                    last=offset + PIECE_BYTES >= total,
                )
        if not await scheduler.steady_has(digest=digest):
            raise LabError(f"{name}, {digest}: the scheduler's machine did not keep it")
        print(f"shipped {name}, {total / 1e6:.1f} MB", file=sys.stderr)
