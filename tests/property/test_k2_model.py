# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model that judges k2 accepts right traces and names each kind of error."""

import k2_model
import pytest

IO = "tracing_mark_write: stream {} {} + {} ioprio {} process 7"
INSERT = "block_rq_insert: 252,0 {} 4096 () {} + {} [io]"
QUEUES = "(8 metadata, 9 best effort, 10 idle)"
DISPATCH = "k2_dispatch: 252,0 {} {} + {} bytes queue {} " + QUEUES + " inflight {}"
COMPLETE = "block_rq_complete: 252,0 {} () {} + {} [{}]"
LOOK_AHEAD = "k2_look_ahead: 252,0 {} + {} bytes room {} ns piece {} bytes takes {} ns"
BACKMERGE = "block_bio_backmerge: 252,0 {} {} + {} [io]"


def trace(*events: str) -> list[str]:
    """The events, one every 100 us."""
    return [
        f" io-1 [000] ..... {index / 10_000:.6f}: {event}" for index, event in enumerate(events)
    ]


# A background read of 8 KiB in two pieces, and a real-time read that comes between them.
GOOD = (
    IO.format("R", 0, 16, "2 0"),
    INSERT.format("R", 0, 16),
    DISPATCH.format("R", 0, 4096, 9, 1),
    IO.format("R", 64, 16, "1 3"),
    INSERT.format("R", 64, 16),
    COMPLETE.format("R", 0, 8, 0),
    INSERT.format("R", 8, 8),
    DISPATCH.format("R", 64, 8192, 3, 1),
    COMPLETE.format("R", 64, 16, 0),
    DISPATCH.format("R", 8, 4096, 9, 1),
    COMPLETE.format("R", 8, 8, 0),
)


def check(*events: str, wait_ms: int = 0, split_kib: int = 4, inflight_max: int = 1) -> None:
    k2_model.Model(inflight_max, split_kib, wait_ms).check(trace(*events))


def changed(index: int, event: str) -> list[str]:
    return [*GOOD[:index], event, *GOOD[index + 1 :]]


def test_accepts_what_is_right() -> None:
    check(*GOOD)


@pytest.mark.parametrize(
    ("index", "event", "complaint"),
    [
        (2, DISPATCH.format("R", 0, 8192, 9, 1), "a piece of 16 sectors"),
        (2, DISPATCH.format("R", 0, 4096, 3, 1), "should be in queue 9"),
        (2, DISPATCH.format("W", 0, 4096, 9, 1), "reads for writes"),
        (2, DISPATCH.format("R", 0, 4096, 9, 2), "2 in flight, inflight_max is 1"),
        (2, DISPATCH.format("R", 32, 4096, 9, 1), "what is not queued"),
        (4, INSERT.format("R", 64, 24), "nobody asked for"),
        (4, INSERT.format("W", 64, 16), "mixes reads and writes"),
        (6, INSERT.format("R", 0, 16), "nobody asked for"),
        (7, DISPATCH.format("R", 64, 4096, 3, 1), "real-time in pieces"),
        (7, DISPATCH.format("R", 8, 4096, 9, 1), "background before queue 3"),
        (8, COMPLETE.format("R", 64, 8, 0), "completes 8 of 16"),
    ],
)
def test_names_what_is_wrong(index: int, event: str, complaint: str) -> None:
    with pytest.raises(k2_model.ModelError, match=complaint):
        check(*changed(index, event))


def test_nothing_may_be_lost() -> None:
    with pytest.raises(k2_model.ModelError, match="never completed"):
        check(*GOOD[:-1])
    with pytest.raises(k2_model.ModelError, match="never dispatched"):
        check(*GOOD[:-2])
    with pytest.raises(k2_model.ModelError, match="never served"):
        check(*GOOD, IO.format("R", 200, 8, "2 0"))


def test_an_error_ends_the_request() -> None:
    failed = COMPLETE.format("R", 0, 8, -5)
    check(*GOOD[:3], failed, COMPLETE.format("R", 8, 8, -5))
    with pytest.raises(k2_model.ModelError, match="succeeds after"):
        check(*GOOD[:3], failed, COMPLETE.format("R", 8, 8, 0))
    with pytest.raises(k2_model.ModelError, match="a second time"):
        check(*GOOD[:3], failed, INSERT.format("R", 8, 8))


def test_a_queue_is_first_in_first_out() -> None:
    announced = [IO.format("R", at, 8, "2 0") for at in (0, 100)]
    inserted = [INSERT.format("R", at, 8) for at in (0, 100)]
    with pytest.raises(k2_model.ModelError, match="which was first"):
        check(*announced, *inserted, DISPATCH.format("R", 100, 4096, 9, 1))


def test_merging_is_bounded_and_leaves_rests_alone() -> None:
    small = (IO.format("R", 0, 8, "2 0"), INSERT.format("R", 0, 8))
    large = (IO.format("R", 8, 512, "2 0"), BACKMERGE.format("R", 8, 512))
    with pytest.raises(k2_model.ModelError, match="merges to 520 sectors"):
        check(*small, *large, split_kib=0)
    real_time = (IO.format("R", 8, 8, "1 0"), BACKMERGE.format("R", 8, 8))
    with pytest.raises(k2_model.ModelError, match=r"merges \(0, 7\) into"):
        check(*small, *real_time)
    rest = (*GOOD[:3], GOOD[5], GOOD[6], IO.format("R", 16, 8, "2 0"), BACKMERGE.format("R", 16, 8))
    with pytest.raises(k2_model.ModelError, match="what is left"):
        check(*rest)


def test_background_waits_as_long_as_it_may_and_no_longer() -> None:
    announced = [IO.format("R", 0, 8, "2 0"), IO.format("R", 100, 8, "1 0")]
    inserted = [INSERT.format("R", 0, 8), INSERT.format("R", 100, 8)]
    pause = ["nothing: at all"] * 12  # of 100 us each
    background = DISPATCH.format("R", 0, 4096, 9, 1)
    real_time = DISPATCH.format("R", 100, 4096, 0, 1)
    with pytest.raises(k2_model.ModelError, match="background before"):
        check(*announced, *inserted, background, wait_ms=1)
    with pytest.raises(k2_model.ModelError, match="although background has waited"):
        check(*announced, *inserted, *pause, real_time, wait_ms=1)
    check(
        *(*announced, *inserted, *pause, background, COMPLETE.format("R", 0, 8, 0)),
        *(real_time, COMPLETE.format("R", 100, 8, 0)),
        wait_ms=1,
    )


def test_best_effort_goes_before_idle() -> None:
    announced = [IO.format("R", 0, 8, "3 0"), IO.format("R", 100, 8, "2 0")]
    inserted = [INSERT.format("R", 0, 8), INSERT.format("R", 100, 8)]
    idle = (DISPATCH.format("R", 0, 4096, 10, 1), COMPLETE.format("R", 0, 8, 0))
    best_effort = (DISPATCH.format("R", 100, 4096, 9, 1), COMPLETE.format("R", 100, 8, 0))
    with pytest.raises(k2_model.ModelError, match="idle before"):
        check(*announced, *inserted, *idle)
    with pytest.raises(k2_model.ModelError, match="idle after"):
        check(*announced, *inserted, *best_effort, *idle)
    check(*announced, *inserted, *best_effort, *["nothing: at all"] * 20, *idle)


def test_processes_take_turns() -> None:
    other = IO.format("R", 200, 8, "2 0").replace("process 7", "process 8")
    announced = [*(IO.format("R", at, 8, "2 0") for at in (0, 100)), other]
    inserted = [INSERT.format("R", at, 8) for at in (0, 100, 200)]
    reads = {
        at: (DISPATCH.format("R", at, 4096, 9, 1), COMPLETE.format("R", at, 8, 0))
        for at in (0, 100, 200)
    }
    with pytest.raises(k2_model.ModelError, match="process 7 twice"):
        check(*announced, *inserted, *reads[0], *reads[100])
    check(*announced, *inserted, *reads[0], *reads[200], *reads[100])


# A real-time read, and a background read of 64 KiB that look-ahead cuts because of it.
RT = (IO.format("R", 1000, 8, "1 0"), INSERT.format("R", 1000, 8))
RT_DONE = (DISPATCH.format("R", 1000, 4096, 0, 1), COMPLETE.format("R", 1000, 8, 0))
LARGE = (IO.format("R", 0, 128, "2 0"), INSERT.format("R", 0, 128))
LET_GO = LOOK_AHEAD.format(0, 65536, 400_000, 8192, 380_000)
PIECE = (DISPATCH.format("R", 0, 8192, 9, 1), COMPLETE.format("R", 0, 16, 0))
REST = (
    *(INSERT.format("R", 16, 112), LOOK_AHEAD.format(16, 57344, 9_000_000, 57344, 1)),
    *(DISPATCH.format("R", 16, 57344, 9, 1), COMPLETE.format("R", 16, 112, 0)),
)


def look_ahead(*events: str, rt_block_us: int = 440, split_kib: int = 0) -> None:
    k2_model.Model(2, split_kib, 0, rt_block_us).check(trace(*events))


def test_look_ahead_cuts_where_it_says() -> None:
    look_ahead(*RT, *RT_DONE, *LARGE, LET_GO, *PIECE, *REST)
    with pytest.raises(k2_model.ModelError, match="a piece of 16 sectors"):
        look_ahead(*RT, *RT_DONE, *LARGE, *PIECE, *REST)
    with pytest.raises(k2_model.ModelError, match="although that is off"):
        look_ahead(*RT, *RT_DONE, *LARGE, LET_GO, split_kib=4)
    with pytest.raises(k2_model.ModelError, match="cuts at 6144 bytes"):
        look_ahead(*LARGE, LOOK_AHEAD.format(0, 65536, 400_000, 6144, 380_000))


def test_no_piece_takes_longer_than_there_is_room_for() -> None:
    with pytest.raises(k2_model.ModelError, match="410000 ns, there is room for 400000"):
        look_ahead(*LARGE, LOOK_AHEAD.format(0, 65536, 400_000, 8192, 410_000))
    # Nothing is smaller than 4 KiB.
    shortest = LOOK_AHEAD.format(0, 65536, 400_000, 4096, 410_000)
    with pytest.raises(k2_model.ModelError, match="never dispatched"):
        look_ahead(*LARGE, shortest)


def test_beside_a_new_stream_there_is_room_for_the_bound_only() -> None:
    rt_in_flight = (*RT, RT_DONE[0])
    with pytest.raises(k2_model.ModelError, match="room for 500000 ns"):
        look_ahead(*rt_in_flight, *LARGE, LOOK_AHEAD.format(0, 65536, 500_000, 8192, 380_000))
    with pytest.raises(k2_model.ModelError, match="without a look ahead"):
        look_ahead(*rt_in_flight, *LARGE, DISPATCH.format("R", 0, 65536, 9, 2))
