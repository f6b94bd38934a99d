# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exceptions; their texts are those of the C interface."""


class Error(Exception):
    """Any error of this package."""


class InvalidError(Error, ValueError):
    """An argument is wrong: the text has its name, value and allowed values. Nothing was done."""


class StateError(Error, RuntimeError):
    """Not possible now: finished already, used by another thread, or in a child of fork()."""


class FailedError(Error, OSError):
    """The system, the file system or the device failed."""


class TooLongError(Error, ValueError):
    """A record was longer than its topic's record_bytes_max; it is counted as lost."""


class FlushTimeoutError(Error, TimeoutError):
    """Not everything became durable in time. Nothing is lost yet."""


class LostError(Error):
    """Not every record is durable, or will be; the ledger counts the losses."""


class FullError(LostError):
    """All segments were full, and recording ended (when_full="stop")."""


class MissingWarning(UserWarning):
    """Something that had once been safe is not among the messages that were read."""
