# SPDX-License-Identifier: MIT OR Apache-2.0
"""What k2 may do, read off its documentation, and the check of a trace against it.

The trace comes from a guest in which io_stream announced every I/O before it submitted it. Nothing
here knows how k2 works: a request is a range of sectors that is queued or with the driver, and each
event must be one that docs/reference/k2.md allows in that state.

    announced ---insert---> queued <---rest, retry---- in flight ---complete---> done
        |                   ^    |                        ^
        +-----bio merge-----+    +-------dispatch---------+
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

BEST_EFFORT = 9
IDLE = 10
CLASS_RT, CLASS_IDLE = "1", "3"
GIVE_WAY_S = 2e-3
BEST_EFFORT_STREAK_MAX = 128
SECTOR = 512
MERGE_BYTES_MAX = 128 * 1024
PIECE_BYTES_MIN = 4096
# A thread with fewer requests is new, and may make the next at any time.
STREAM_IS_NEW = 24
# Between k2's look at the clock and the event in the trace; each clock read in a guest is 0.256 us.
CLOCK_SLACK_S = 50e-6

_EVENT = re.compile(r"\s(\d+\.\d+): (\w+): (.*)$")
_RANGE = re.compile(r"^\S+ ([A-Z]+) .*?(\d+) \+ (\d+) ")


class ModelError(AssertionError):
    """k2 broke a rule; the message names the event."""


@dataclass(eq=False)
class Io:
    """One I/O as announced; its sectors leave `Model.sectors` when they are done."""

    write: bool
    queue: int
    process: int


@dataclass(eq=False)
class Request:
    """A request that k2 knows. `places`: its place in the queue, or two if it was merged."""

    write: bool
    queue: int
    first: int
    count: int
    places: tuple[int, ...]
    process: int
    queued_at: int  # as many dispatches were before
    is_new: bool = True
    is_known: bool = False  # real-time that belongs to a stream of k2
    piece: int = 0  # sectors with the driver, or to be retried as they were
    failed: bool = False

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def is_background(self) -> bool:
        return self.queue >= BEST_EFFORT


@dataclass
class Knob:
    """A knob's value; two values while it is being written."""

    values: tuple[int, ...]

    def begin(self, value: int) -> None:
        self.values = (*self.values, value)

    def end(self) -> None:
        self.values = self.values[-1:]


@dataclass
class Model:
    """Feed it the events in order; it raises ModelError at the first that must not be."""

    inflight_max: int
    split_kib: int
    wait_ms: int = 0
    rt_block_us: int = 0
    rt_strict: int = 1
    block_bytes: int = 512
    sectors: dict[int, Io] = field(default_factory=dict)
    queued: list[Request] = field(default_factory=list)
    in_flight: list[Request] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.knobs = {
            "inflight_max": Knob((self.inflight_max,)),
            "split_kib": Knob((self.split_kib,)),
            "background_wait_ms_max": Knob((self.wait_ms,)),
            "rt_block_us": Knob((self.rt_block_us,)),
        }
        self.seen: set[int] = set()  # sectors that k2 or a plug has
        self.arrivals: dict[tuple[int, int], int] = {}  # of each real-time process and level
        self.ahead: tuple[int, int] | None = None  # sector and sectors that look-ahead let go
        self.place_next = 0
        self.place_head = -1
        self.completions = 0  # since the last event of another kind
        self.background_waits_since_s: float | None = None
        self.dispatches = 0
        self.turn = (0, 0)  # process of best effort that was dispatched last, and when
        self.best_effort_streak = 0  # while idle was queued
        self.gives_way = False  # idle, to best effort
        self.quiet_since_s: float | None = None  # None: idle has had its turn since

    def check(self, lines: Iterable[str]) -> None:
        for time_s, name, text in _events(lines):
            handler = getattr(self, f"_on_{name}", None)
            if not handler:
                continue
            try:
                handler(text, time_s)
            except ModelError as error:
                raise ModelError(f"{error}\nat: {time_s:.6f} {name}: {text}") from None
            self.counts[name] = self.counts.get(name, 0) + 1
            self.completions = self.completions + 1 if name == "block_rq_complete" else 0
            self._note_background_waits(time_s)
            self._note_gives_way(time_s)
        self._check_end()

    def _check_end(self) -> None:
        _must(not self.queued, f"never dispatched: {self.queued[:3]}")
        _must(not self.in_flight, f"never completed: {self.in_flight[:3]}")
        _must(not self.sectors, f"{len(self.sectors)} sectors of I/Os were never served")

    # Events. The names are those of the trace.

    def _on_tracing_mark_write(self, text: str, _time_s: float) -> None:
        words = text.split()
        if words[0] == "knob":
            knob = self.knobs[words[2]]
            if words[1] == "begin":
                knob.begin(int(words[3]))
            else:
                knob.end()
            return
        first, count = int(words[2]), int(words[4])
        others = IDLE if words[6] == CLASS_IDLE else BEST_EFFORT
        queue = int(words[7]) if words[6] == CLASS_RT else others
        io = Io(words[1] == "W", queue, int(words[9]))
        for sector in range(first, first + count):
            _must(sector not in self.sectors, "the stream's I/Os overlap: its own bug")
            self.sectors[sector] = io
            self.seen.discard(sector)

    def _on_block_rq_insert(self, text: str, _time_s: float) -> None:
        write, first, count = _parse(text)
        back = next((rq for rq in self.in_flight if _comes_back(rq, first, count)), None)
        if back:
            self._give_back(back, first)
            return
        queue, process = self._claim(write, first, count)
        place = (self.place_next,)
        request = Request(write, queue, first, count, place, process, self.dispatches)
        if not request.is_background and self._surely_looks_ahead():
            request.is_known = True
            stream = (process, queue)
            self.arrivals[stream] = self.arrivals.get(stream, 0) + 1
        self.queued.append(request)
        self.place_next += 1

    def _on_block_bio_backmerge(self, text: str, _time_s: float) -> None:
        write, first, count = _parse(text)
        request = self._queued_where(lambda rq: rq.end == first and rq.write == write)
        if request:
            self._grow(request, write, first, count)
            request.count += count

    def _on_block_bio_frontmerge(self, text: str, _time_s: float) -> None:
        write, first, count = _parse(text)
        request = self._queued_where(lambda rq: rq.first == first + count and rq.write == write)
        if request:
            self._grow(request, write, first, count)
            request.first = first
            request.count += count

    def _on_block_rq_merge(self, text: str, _time_s: float) -> None:
        write, first, count = _parse(text)
        gone = self._queued_where(lambda rq: rq.first == first and rq.count == count)
        into = self._queued_where(lambda rq: rq.end == first and rq.write == write)
        if not gone or not into:
            raise ModelError("merges requests that are not queued side by side")
        self._check_merge(into, into.count + count)
        _must(gone.is_new, "merges what is left of a request")
        into.count += count
        into.places += gone.places
        self.queued.remove(gone)

    def _on_k2_dispatch(self, text: str, time_s: float) -> None:
        words = text.split()
        first, sectors = int(words[2]), int(words[4]) // SECTOR
        queue, inflight = int(words[7]), int(words[-1])
        request = self._queued_where(lambda rq: rq.first == first)
        if not request:
            raise ModelError("dispatches what is not queued")
        _must(request.write == (words[1] == "W"), "reads for writes, or writes for reads")
        _must(request.queue == queue, f"should be in queue {request.queue}")
        self._check_inflight(inflight)
        self._check_order(request, time_s)
        self._check_turn(request, time_s)
        self._check_piece(request, sectors)
        self._count_turn(request)
        request.piece = sectors
        request.is_new = False
        self.queued.remove(request)
        self.in_flight.append(request)

    def _on_k2_look_ahead(self, text: str, _time_s: float) -> None:
        words = text.split()
        first, count = int(words[1]), int(words[3]) // SECTOR
        room_ns, piece_bytes, takes_ns = int(words[6]), int(words[9]), int(words[12])
        request = self._queued_where(lambda rq: rq.first == first)
        if not request:
            raise ModelError("looks ahead for what is not queued")
        _must(count == request.count, f"says {count} sectors, there are {request.count}")
        _must(self._may_look_ahead(), "looks ahead, although that is off")
        whole = piece_bytes == count * SECTOR
        least = max(PIECE_BYTES_MIN, self.block_bytes)
        _must(whole or piece_bytes % least == 0, f"cuts at {piece_bytes} bytes")
        # Without rt_strict a piece may take longer if the device becomes slow meanwhile.
        too_long = self.rt_strict and takes_ns > room_ns and not self.in_flight
        _must(not too_long or piece_bytes <= least, f"{takes_ns} ns, there is room for {room_ns}")
        bound_ns = max(self.knobs["rt_block_us"].values) * 1000
        new = [rq for rq in self._known(request.queue) if self._is_new(rq)]
        _must(not new or room_ns <= bound_ns, f"room for {room_ns} ns, although {new[:1]} is new")
        self.ahead = (first, piece_bytes // SECTOR)

    def _on_block_rq_complete(self, text: str, _time_s: float) -> None:
        _write, first, count = _parse(text)
        request = next((rq for rq in self.in_flight if rq.first == first), None)
        _must(request is not None, "completes what is not in flight")
        assert request
        _must(count == request.piece, f"completes {count} of {request.piece} sectors")
        failed = not text.endswith("[0]")
        _must(failed or not request.failed, "succeeds after a piece of it has failed")
        self._serve(first, count)
        if count == request.count:
            self.in_flight.remove(request)
        elif failed:  # all the rest fails with it, at once
            request.failed = True
            request.first += count
            request.count -= count
            request.piece = request.count

    # Rules.

    def _check_inflight(self, inflight: int) -> None:
        limit = max(self.knobs["inflight_max"].values)
        _must(inflight <= limit, f"{inflight} in flight, inflight_max is {limit}")
        # A completion between the decision and its trace event is before it in the trace.
        known = len(self.in_flight) + 1
        _must(
            known <= inflight <= known + self.completions,
            f"says {inflight} in flight, there are {known}",
        )

    def _check_order(self, request: Request, time_s: float) -> None:
        better = [rq for rq in self.queued if not rq.is_background and rq.queue < request.queue]
        waits = self.knobs["background_wait_ms_max"].values
        waited_s = time_s - (self.background_waits_since_s or time_s)
        if request.is_background and better:
            longest_s = waited_s + CLOCK_SLACK_S
            allowed = any(wait and longest_s >= wait / 1000 for wait in waits)
            _must(allowed, f"background before queue {better[0].queue}, {waited_s:.6f} s waited")
        else:
            _must(not better, f"queue {request.queue} before {better[:1]}")
        if not request.is_background and not self._idle_only():
            due = all(wait and waited_s - CLOCK_SLACK_S > wait / 1000 for wait in waits)
            _must(not due, f"real-time, although background has waited {waited_s:.6f} s")
        for other in self.queued:
            same_flow = request.queue != BEST_EFFORT or other.process == request.process
            if other.queue == request.queue and same_flow:
                in_turn = min(request.places) <= max(other.places)
                _must(in_turn, f"before {other}, which was first")

    def _check_turn(self, request: Request, time_s: float) -> None:
        """Best effort goes before idle, and process by process."""
        others = [rq for rq in self.queued if rq.queue == BEST_EFFORT]
        if request.queue == IDLE and self.best_effort_streak < BEST_EFFORT_STREAK_MAX:
            busy = others or [rq for rq in self.in_flight if rq.queue == BEST_EFFORT]
            _must(not busy, f"idle before {busy[:1]}")
            quiet_s = time_s - (self.quiet_since_s or 0)
            _must(quiet_s >= GIVE_WAY_S - CLOCK_SLACK_S, f"idle after {quiet_s:.6f} s")
        if request.queue != BEST_EFFORT:
            return
        idle = any(rq.queue == IDLE for rq in self.queued)
        starves = idle and self.best_effort_streak >= BEST_EFFORT_STREAK_MAX
        _must(not starves, "best effort, although idle has waited for its turn")
        process, since = self.turn
        waiting = [rq for rq in others if rq.process != process and rq.queued_at < since]
        again = request.process == process and waiting
        _must(not again, f"process {process} twice, although {waiting[:1]} waits")

    def _count_turn(self, request: Request) -> None:
        self.dispatches += 1
        if request.queue == IDLE:
            self.best_effort_streak = 0
            self.quiet_since_s = None
        elif request.queue == BEST_EFFORT:
            self.best_effort_streak += any(rq.queue == IDLE for rq in self.queued)
            self.turn = (request.process, self.dispatches)

    def _idle_only(self) -> bool:
        """Tell whether the background that waits is of class idle: it may give way meanwhile."""
        return not any(rq.queue == BEST_EFFORT for rq in self.queued)

    def _check_piece(self, request: Request, sectors: int) -> None:
        if request.piece:
            _must(sectors == request.piece, f"a retry of {request.piece} sectors has another size")
            return
        let_go = self.ahead == (request.first, sectors)
        if let_go and self._may_look_ahead():
            return
        guarded = self._known(request.queue) and self._surely_looks_ahead()
        _must(not guarded, f"{sectors} sectors without a look ahead, next to real-time")
        if not request.is_background:
            _must(sectors == request.count, f"real-time in pieces: {sectors} of {request.count}")
            return
        allowed = {
            min(kib * 1024 // SECTOR, request.count) if kib else request.count
            for kib in self.knobs["split_kib"].values
        }
        _must(sectors in allowed, f"a piece of {sectors} sectors, should be {sorted(allowed)}")

    def _check_merge(self, request: Request, sectors: int) -> None:
        _must(request.is_background, "merges real-time")
        _must(request.is_new, "merges into what is left of a request")
        unsplit = max(self.knobs["split_kib"].values) == 0
        if unsplit and not self._may_look_ahead():
            _must(sectors * SECTOR <= MERGE_BYTES_MAX, f"merges to {sectors} sectors")

    def _may_look_ahead(self) -> bool:
        return (
            max(self.knobs["rt_block_us"].values) > 0 and min(self.knobs["split_kib"].values) == 0
        )

    def _surely_looks_ahead(self) -> bool:
        return (
            min(self.knobs["rt_block_us"].values) > 0 and max(self.knobs["split_kib"].values) == 0
        )

    def _known(self, queue: int) -> list[Request]:
        """Return real-time requests of better levels that have not ended, of known streams."""
        requests = (*self.queued, *self.in_flight)
        return [rq for rq in requests if rq.is_known and rq.queue < queue]

    def _is_new(self, request: Request) -> bool:
        return self.arrivals[request.process, request.queue] < STREAM_IS_NEW

    # State.

    def _claim(self, write: bool, first: int, count: int) -> tuple[int, int]:
        """Take announced sectors that nobody has yet; returns their queue and process."""
        ios = [self.sectors.get(sector) for sector in range(first, first + count)]
        found = [io for io in ios if io]
        _must(len(found) == count, "contains sectors that nobody asked for")
        _must(all(io.write == write for io in found), "mixes reads and writes")
        queues = {(io.queue, io.process) for io in found}
        _must(len(queues) == 1, f"mixes queues or processes {queues}")
        sectors = set(range(first, first + count))
        _must(not sectors & self.seen, "serves an I/O a second time")
        self.seen |= sectors
        return queues.pop()

    def _serve(self, first: int, count: int) -> None:
        for sector in range(first, first + count):
            del self.sectors[sector]

    def _give_back(self, request: Request, first: int) -> None:
        if first != request.first:  # a rest; else a retry, which keeps its size
            request.count -= request.piece
            request.first = first
            request.piece = 0
        request.places = (self.place_head,)
        request.queued_at = self.dispatches
        self.place_head -= 1
        self.in_flight.remove(request)
        self.queued.append(request)

    def _grow(self, request: Request, write: bool, first: int, count: int) -> None:
        self._check_merge(request, request.count + count)
        claimed = self._claim(write, first, count)
        _must(claimed == (request.queue, request.process), f"merges {claimed} into {request}")

    def _queued_where(self, wanted: Callable[[Request], bool]) -> Request | None:
        return next((request for request in self.queued if wanted(request)), None)

    def _note_background_waits(self, time_s: float) -> None:
        queued = any(rq.is_background for rq in self.queued)
        waits = queued and not any(rq.is_background for rq in self.in_flight)
        if not waits:
            self.background_waits_since_s = None
        elif self.background_waits_since_s is None:
            self.background_waits_since_s = time_s

    def _note_gives_way(self, time_s: float) -> None:
        idle = any(rq.queue == IDLE for rq in self.queued)
        others = any(rq.queue == BEST_EFFORT for rq in (*self.queued, *self.in_flight))
        if self.gives_way and not (idle and others):
            self.quiet_since_s = time_s
        self.gives_way = idle and others


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelError(otherwise)


def _events(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    for line in lines:
        match = _EVENT.search(line)
        if match:
            yield float(match[1]), match[2], match[3]


def _parse(text: str) -> tuple[bool, int, int]:
    """Direction, first sector and number of sectors of a block event."""
    match = _RANGE.match(text + " ")
    if not match:
        raise ValueError(f"not a block event: {text}")
    return "W" in match[1], int(match[2]), int(match[3])


def _comes_back(request: Request, first: int, count: int) -> bool:
    is_retry = first == request.first and count == request.piece
    is_rest = first == request.first + request.piece and count == request.count - request.piece
    return not request.failed and (is_retry or is_rest)
