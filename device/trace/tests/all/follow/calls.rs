// SPDX-License-Identifier: MIT OR Apache-2.0
//! The origin of a request: calls, io_uring, aio, readahead, writeback, the journal.

use steadyio_trace::event::{Call, EventKind, Extent};
use steadyio_trace::io::{Mark, Origin, Spans};

use crate::events::{DISK, Script, extent};

/// From bio to end, by the thread that is set, at `from_ns`, `from_ns + 1`, `from_ns + 2` and `to_ns`.
fn serve(script: &mut Script, place: Extent, (from_ns, to_ns): (u64, u64)) {
    script.at(from_ns).block('Q', place).at(from_ns + 1).block('G', place);
    script.at(from_ns + 2).block('D', place).at(to_ns).block('C', place);
}

#[test]
fn an_operation_of_io_uring_lasts_from_submission_to_the_end_of_the_call_that_fetches_it() {
    let mut script = Script::new();
    let places = [extent("R", 0, 8), extent("R", 8, 8)];
    script.by(1).at(0).enter(Call::IoUringEnter);
    for (nth, place) in places.iter().enumerate() {
        let request = nth as u64;
        script.at(10 + request).what(EventKind::UringSubmit {
            request,
            sq_thread: false,
            operation: None,
        });
        script.block('Q', *place).block('G', *place).block('D', *place);
    }
    script.at(12).exit(Call::IoUringEnter, 2).at(20).enter(Call::IoUringEnter);
    script.at(30).block('C', places[0]).what(EventKind::UringComplete { request: 0, result: 4096 });
    script.at(40).exit(Call::IoUringEnter, 1);
    script.at(50).block('C', places[1]).what(EventKind::UringComplete { request: 1, result: 4096 });
    script.at(60).enter(Call::IoUringEnter).at(61).exit(Call::IoUringEnter, 0);
    let trace = script.follow();
    let times: Vec<_> =
        trace.ios.iter().map(|io| (io.entered_ns, io.exited_ns, io.bytes)).collect();
    assert_eq!(times, [(10, 40, 4096), (11, 61, 4096)]);
    assert_eq!((&trace.ios[0].requests[..], &trace.ios[1].requests[..]), (&[0][..], &[1][..]));
}

#[test]
fn what_the_kernels_polling_thread_submits_ends_with_its_completion() {
    let mut script = Script::new();
    script
        .by(5)
        .at(1)
        .what(EventKind::UringSubmit { request: 9, sq_thread: true, operation: None })
        .at(2);
    serve(&mut script, extent("R", 0, 8), (2, 8));
    script.at(9).what(EventKind::UringComplete { request: 9, result: 4096 });
    let trace = script.follow();
    assert_eq!((trace.ios[0].entered_ns, trace.ios[0].exited_ns), (1, 9));
}

#[test]
fn an_operation_that_returns_a_file_descriptor_moves_no_bytes() {
    let mut script = Script::new();
    let operation = Some(Call::Openat);
    script.by(5).at(1).what(EventKind::UringSubmit { request: 9, sq_thread: true, operation });
    serve(&mut script, extent("RM", 0, 8), (2, 8));
    script.at(9).what(EventKind::UringComplete { request: 9, result: 5 });
    assert_eq!(script.follow().ios[0].bytes, 0);
}

#[test]
fn an_operation_from_memory_is_no_io() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::IoUringEnter);
    script.at(1).what(EventKind::UringSubmit { request: 9, sq_thread: false, operation: None });
    script.at(2).what(EventKind::UringComplete { request: 9, result: 4096 });
    script.at(3).exit(Call::IoUringEnter, 1);
    let trace = script.follow();
    assert_eq!((trace.ios.len(), trace.account.calls_without_request), (0, 1));
}

#[test]
fn each_bio_of_io_submit_is_an_io_that_io_getevents_ends() {
    let mut script = Script::new();
    let places = [extent("R", 0, 8), extent("R", 64, 8)];
    script.by(1).at(0).enter(Call::IoSubmit).at(5);
    for place in places {
        script.block('Q', place).block('G', place).block('D', place);
    }
    script.at(6).exit(Call::IoSubmit, 2).at(10).enter(Call::IoGetevents);
    script.at(20).block('C', places[1]).at(25).exit(Call::IoGetevents, 1);
    script.at(30).enter(Call::IoGetevents).at(40).block('C', places[0]);
    script.at(45).exit(Call::IoGetevents, 1);
    let trace = script.follow();
    let times: Vec<_> =
        trace.ios.iter().map(|io| (io.entered_ns, io.exited_ns, io.bytes)).collect();
    assert_eq!(times, [(0, 25, 4096), (0, 45, 4096)]);
}

#[test]
fn readahead_that_a_call_waits_for_is_its_io() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Read);
    serve(&mut script, extent("RA", 0, 8), (10, 50));
    script.at(60).exit(Call::Read, 4096);
    let trace = script.follow();
    assert_eq!((trace.ios.len(), trace.requests[0].origin), (1, Origin::Io(0)));
}

#[test]
fn readahead_that_ends_after_the_call_is_of_its_inode() {
    let mut script = Script::new();
    let place = extent("RA", 0, 8);
    script.by(1).at(0).enter(Call::Read).what(EventKind::PageCacheAdd { dev: DISK, inode: 12 });
    script.block('Q', place).block('G', place).block('D', place).at(5).exit(Call::Read, 4096);
    script.by(0).at(9).block('C', place);
    let trace = script.follow();
    assert_eq!(trace.requests[0].origin, Origin::Readahead(Some(12)));
    assert_eq!((trace.ios.len(), trace.account.calls_without_request), (0, 1));
}

#[test]
fn readahead_beside_what_was_asked_for_is_not_waited_for() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Read);
    serve(&mut script, extent("RM", 800, 8), (10, 20));
    serve(&mut script, extent("RA", 0, 8), (22, 40));
    script.at(60).exit(Call::Read, 4096);
    let trace = script.follow();
    assert_eq!(trace.ios[0].requests, [0]);
    assert_eq!(trace.requests[1].origin, Origin::Readahead(None));
}

#[test]
fn writeback_is_of_its_inode() {
    let mut script = Script::new();
    script.named(9, "kworker/u4:1").at(0).what(EventKind::WritebackStart { inode: 77 });
    serve(&mut script, extent("W", 0, 8), (1, 5));
    script.what(EventKind::WritebackEnd { inode: 77 });
    serve(&mut script, extent("W", 64, 8), (10, 15));
    let trace = script.follow();
    assert_eq!(trace.requests[0].origin, Origin::Writeback(Some(77)));
    assert_eq!(trace.requests[1].origin, Origin::Thread);
}

#[test]
fn writeback_without_its_end_is_unknown() {
    let mut script = Script::new();
    script.named(9, "kworker/u4:1").at(0).what(EventKind::WritebackStart { inode: 77 });
    serve(&mut script, extent("R", 64, 8), (10, 15));
    let trace = script.follow();
    assert_eq!(trace.requests[0].origin, Origin::Thread);
    let missing = |event| trace.missing.iter().any(|missing| missing.event == event);
    assert!(missing("writeback:writeback_single_inode"), "{:?}", trace.missing);
}

/// A commit of the journal of one request, by its thread.
fn commit(script: &mut Script, (from_ns, to_ns): (u64, u64)) {
    script.named(50, "jbd2/sda1-8").at(from_ns);
    script.what(EventKind::JournalCommitStart { dev: DISK, transaction: 3 });
    serve(script, extent("WS", 9_000, 8), (from_ns + 1, to_ns - 1));
    script.at(to_ns).what(EventKind::JournalCommitEnd { dev: DISK, transaction: 3 });
}

#[test]
fn an_fsync_that_waits_for_a_commit_has_the_journals_requests() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Fsync);
    serve(&mut script, extent("W", 0, 8), (10, 20));
    commit(&mut script, (30, 60));
    script.by(1).at(70).exit(Call::Fsync, 0);
    let trace = script.follow();
    assert_eq!(trace.ios[0].requests, [0, 1]);
    assert_eq!(trace.requests[1].origin, Origin::Journal);
    let expected = Spans { submission_ns: 21, block_ns: 4, device_ns: 34, post_ns: 11 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn an_fsync_of_another_device_does_not_have_them() {
    let mut script = Script::new();
    let mut elsewhere = extent("W", 0, 8);
    elsewhere.dev.minor = 8;
    script.by(1).at(0).enter(Call::Fsync);
    serve(&mut script, elsewhere, (10, 20));
    commit(&mut script, (30, 60));
    script.by(1).at(70).exit(Call::Fsync, 0);
    assert_eq!(script.follow().ios[0].requests, [0]);
}

#[test]
fn a_synchronous_write_waits_for_the_commit_that_begins_after_its_data() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Pwrite64);
    serve(&mut script, extent("WS", 0, 8), (10, 20));
    commit(&mut script, (30, 60));
    script.by(1).at(70).exit(Call::Pwrite64, 4096);
    assert_eq!(script.follow().ios[0].requests, [0, 1]);
}

#[test]
fn a_write_is_not_given_a_commit_of_others_that_began_before_its_data_ended() {
    let mut script = Script::new();
    let data = extent("WS", 0, 8);
    script.by(1).at(0).enter(Call::Pwrite64).at(10).block('Q', data).block('G', data);
    script.block('D', data);
    commit(&mut script, (30, 60));
    script.by(1).at(65).block('C', data).at(70).exit(Call::Pwrite64, 4096);
    assert_eq!(script.follow().ios[0].requests.len(), 1);
}

#[test]
fn events_that_were_never_seen_are_named_with_what_follows() {
    let mut script = Script::new();
    let place = extent("R", 0, 8);
    script.by(1).at(0).block('Q', place).at(1).block('D', place).at(9).block('C', place);
    let trace = script.follow();
    assert_eq!(trace.requests[0].marks.get(Mark::Queued), Some(0), "found without its tag");
    let missing: Vec<&str> = trace.missing.iter().map(|missing| missing.event).collect();
    for event in ["block:block_getrq", "block:block_rq_insert", "syscalls:sys_enter_*"] {
        assert!(missing.contains(&event), "{missing:?}");
    }
}
