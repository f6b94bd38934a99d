# SPDX-License-Identifier: MIT OR Apache-2.0
"""The interface of a target, which runs a kernel, to figures and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from steady_lab.devices.spec import DeviceSpec
from steady_lab.errors import LabError
from steady_lab.kernels.modules import K2, Module

WALL_TIMEOUT_S_DEFAULT = 600.0


class BootError(LabError):
    """The kernel reported an error, the guest could not start, or a time limit was reached."""


class RunError(BootError):
    """The guest started, and its kernel reported an error, or it did not end as it should."""


class Flag(Protocol):
    """A flag that another thread may set, such as threading.Event."""

    def is_set(self) -> bool:
        """Tell whether it was."""


@dataclass(frozen=True)
class BootRequest:
    """What to run.

    `modules` are further modules to load first: the name of one of the kernel's own, `chario`, or
    the path of a .ko file, each followed by its parameters ("null_blk nr_devices=0"). Their
    dependencies are loaded before them.
    `card_image` is a file in `work` with the card's contents, whatever the device's spec says;
    `write_log` one for all changes of them (docs/devices.md).
    `random_seed` decides the guest's random numbers, UUIDs included: successive boots on the same
    card need different ones.
    `cancelled`, once set, ends the guest and makes `boot` raise BootError.
    """

    command: Sequence[str]
    work: Path
    device: Path | None = None
    card_image: str | None = None
    write_log: str | None = None
    modules: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    random_seed: int = 0
    timeout_s: float = WALL_TIMEOUT_S_DEFAULT
    on_output: Callable[[str], None] | None = None
    cancelled: Flag | None = None


@dataclass(frozen=True)
class BootResult:
    """How it ended: the command's exit status and output, and the whole kernel log."""

    exit_status: int
    output: str
    kernel_log: str
    wall_s: float


@dataclass(frozen=True)
class Part:
    """Files of this machine that a guest needs: `files` below `folder`; if none, all of it."""

    name: str
    folder: Path
    files: tuple[str, ...] = ()


class Target(Protocol):
    """A kernel, and the way to run something on it; can be pickled."""

    @property
    def release(self) -> str:
        """Return the kernel's release, as in 6.1."""

    @property
    def config_sha256(self) -> str:
        """Return the hash of the kernel's configuration, which results note."""

    def identity(self, request: BootRequest) -> dict[str, Any]:
        """Return all that decides how a boot ends, except files of the work folder and the clone.

        Results are kept under it, so it names content, not places of this machine.
        """

    def boot(self, request: BootRequest) -> BootResult:
        """Boot, run the command, power off.

        Raises BootError if the kernel log holds a sign of trouble, the time limit is reached or the
        guest ends without reporting an exit status. The command's own failure is only reported.
        """


def modules_of(device: DeviceSpec | None) -> list[Module]:
    """Return the lab's own modules that a target loads."""
    return [K2, device.kind.module] if device else [K2]
