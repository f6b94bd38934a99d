# SPDX-License-Identifier: MIT OR Apache-2.0
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import final

from typing_extensions import Buffer

from .types import Account, Missing, Recording, Schema, Stats, Topic

_Path = str | PathLike[str]

__all__ = ["Channel", "Following", "Message", "Reading", "Recorder", "__version__", "read"]
__version__: str

@final
class Channel:
    @property
    def topic(self) -> str: ...
    def append(
        self,
        data: Buffer,
        *,
        log_time_ns: int | None = None,
        publish_time_ns: int | None = None,
    ) -> bool: ...
    def account(self) -> Account: ...

@final
class Recorder:
    def __new__(
        cls,
        dir: _Path,
        topics: Sequence[Topic],
        *,
        segment_bytes: int | None = None,
        segments: int | None = None,
        keep_bytes: int | None = None,
        keep_free_bytes: int | None = None,
        keep_s: float | None = None,
        loss_window_s: float | None = None,
        unit_bytes: int | None = None,
        longest_record_bytes: int | None = None,
        late_topics: int | None = None,
        late_definition_bytes: int | None = None,
        profile: str = "",
        when_full: str = "recycle",
        on_failure: str = "wait",
        discard_damaged: bool = False,
        lock_memory: bool = True,
        engine: str = "best",
        writer_fifo_priority: int | None = None,
        writer_cpu: int | None = None,
        writer_io_class: int | None = None,
        writer_io_level: int | None = None,
        control_socket: _Path | None = None,
        compression: str = "none",
        note: Callable[[str], object] | None = None,
    ) -> Recorder: ...
    def topic(self, name: str) -> Channel: ...
    def declare(self, topic: Topic) -> Channel: ...
    def flush(self, timeout_s: float = 10.0) -> None: ...
    def keep_incident(self, name: str, last_s: float) -> float: ...
    def finish(self) -> None: ...
    def ledger(self) -> dict[str, Account]: ...
    def stats(self) -> Stats: ...
    def __enter__(self) -> Recorder: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...

@final
class Message:
    @property
    def topic(self) -> str: ...
    @property
    def log_time_ns(self) -> int: ...
    @property
    def publish_time_ns(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    @property
    def encoding(self) -> str: ...
    @property
    def schema(self) -> Schema | None: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def recording_id(self) -> str: ...

@final
class Reading(Iterator[Message]):
    def __iter__(self) -> Reading: ...
    def __next__(self) -> Message: ...
    @property
    def missing(self) -> Missing: ...
    @property
    def unreadable(self) -> list[tuple[str, str]]: ...
    @property
    def out_of_order(self) -> int: ...
    @property
    def topics(self) -> list[str]: ...
    @property
    def times_ns(self) -> tuple[int, int] | None: ...
    @property
    def recordings(self) -> list[Recording]: ...

@final
class Following:
    def __new__(cls, dir: _Path) -> Following: ...
    def poll(self, topics: set[str]) -> tuple[list[Message], bool]: ...
    def last(self, topic: str) -> Message | None: ...
    @property
    def channels(self) -> list[tuple[str, str, Schema | None, dict[str, str]]]: ...
    @property
    def skipped_segments(self) -> int: ...

def read(
    path: _Path | Sequence[_Path],
    topics: Sequence[str] | None = None,
    *,
    from_ns: int | None = None,
    to_ns: int | None = None,
) -> Reading: ...
