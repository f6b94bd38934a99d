// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flush requests and those who wait for them, as block/blk-flush.c makes them.

use steadyio_trace::event::{Call, Dev, EventKind, Extent};
use steadyio_trace::io::{Mark, Origin, Spans};

use crate::events::{Script, counted, extent};

/// fsync of a file with nothing to write: a bio without data.
fn begin_flush(script: &mut Script, pid: u32, cpu: u32, at_ns: u64) {
    let nothing = extent("FWS", 0, 0);
    script.on(cpu).at(at_ns).by(pid).enter(Call::Fsync);
    script.at(at_ns + 1).block('Q', nothing).at(at_ns + 2).block('G', nothing);
}

/// The block layer's own request, from the worker that requeues, and the end of those that it served.
fn flush(script: &mut Script, cpu: u32, (from_ns, to_ns): (u64, u64), served: u32) {
    script.on(cpu).by(99).at(from_ns).block('D', extent("FF", 0, 0));
    script.by(0).at(to_ns).block('C', extent("FF", u64::MAX, 0));
    for nth in 0..served {
        script.at(to_ns + 1 + u64::from(nth)).block('C', extent("WS", 0, 0));
    }
}

/// What Linux 6.1 did for an fsync of a device-mapper disk of two parts on a partition, whose flushes have sectors.
fn flush_through_device_mapper(script: &mut Script) {
    let mapped = Dev { major: 253, minor: 0 };
    let [first, second] = [4_096, 6_144].map(|sector| extent("FWS", sector, 0));
    script
        .at(10)
        .by(7)
        .enter(Call::Fsync)
        .block('Q', Extent { dev: mapped, ..extent("FWS", 0, 0) });
    for (at_ns, part) in [(11, first), (13, second)] {
        script.at(at_ns).what(EventKind::BioRemap { to: part, from: (mapped, 0) }).block('Q', part);
    }
    script.at(15).block('G', first).at(16).block('G', second);
    for (from_ns, sector) in [(20, 4_096), (60, 6_144)] {
        script.by(99).at(from_ns).block('D', extent("FF", 0, 0));
        script.by(0).at(from_ns + 30).block('C', extent("FF", u64::MAX, 0));
        script.block('C', extent("WS", sector, 0));
    }
    script.at(100).by(7).exit(Call::Fsync, 0);
}

#[test]
fn the_error_of_a_flush_is_its_own_where_only_those_it_served_are_told() {
    let mut script = Script::new();
    begin_flush(&mut script, 7, 0, 10);
    script.by(99).at(20).block('D', extent("FF", 0, 0));
    script.by(0).at(30).block('C', extent("FF", u64::MAX, 0));
    script.at(31).what(EventKind::Complete { extent: extent("WS", 0, 0), error: -5 });
    script.at(40).by(7).exit(Call::Fsync, -5);
    let trace = script.follow();
    assert_eq!((trace.ios.len(), trace.requests[0].error, trace.account.failed), (1, -5, 1));
}

#[test]
fn flushes_through_device_mapper_are_those_of_one_io() {
    let mut script = Script::new();
    flush_through_device_mapper(&mut script);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios.len()), (2, 1));
    assert_eq!(trace.ios[0].requests, [0, 1]);
    let expected = Spans { submission_ns: 0, block_ns: 20, device_ns: 60, post_ns: 10 };
    assert_eq!(trace.ios[0].spans, expected);
    for request in &trace.requests {
        assert_eq!(request.through, [Dev { major: 253, minor: 0 }]);
        assert_eq!((request.pid, request.marks.get(Mark::Queued)), (7, Some(10)));
    }
}

fn end_call(script: &mut Script, pid: u32, cpu: u32, at_ns: u64) {
    script.on(cpu).at(at_ns).by(pid).exit(Call::Fsync, 0);
}

#[test]
fn an_fsync_of_clean_data_is_one_flush_request() {
    let mut script = Script::new();
    begin_flush(&mut script, 7, 0, 100);
    flush(&mut script, 0, (110, 150), 1);
    end_call(&mut script, 7, 0, 160);
    let trace = script.follow();
    assert_eq!((trace.account.matched, counted(&trace)), (1, 1));
    let request = &trace.requests[0];
    assert_eq!((request.bytes, request.pid, request.origin), (0, 7, Origin::Io(0)));
    assert_eq!(request.marks.get(Mark::Queued), Some(101));
    let expected = Spans { submission_ns: 1, block_ns: 9, device_ns: 40, post_ns: 10 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn one_flush_serves_all_that_wait_when_it_begins() {
    let mut script = Script::new();
    begin_flush(&mut script, 7, 0, 100);
    begin_flush(&mut script, 8, 1, 103);
    flush(&mut script, 0, (110, 150), 2);
    end_call(&mut script, 7, 0, 160);
    end_call(&mut script, 8, 1, 161);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios.len()), (1, 2));
    assert_eq!(trace.requests[0].merged_queued_ns, [104]);
    assert!(trace.ios.iter().all(|io| io.requests == [0]));
}

#[test]
fn who_comes_after_a_flush_began_is_served_by_the_next() {
    let mut script = Script::new();
    begin_flush(&mut script, 7, 0, 100);
    script.on(0).by(99).at(110).block('D', extent("FF", 0, 0));
    begin_flush(&mut script, 8, 1, 120);
    script.on(0).by(0).at(150).block('C', extent("FF", u64::MAX, 0));
    script.at(151).block('C', extent("WS", 0, 0));
    end_call(&mut script, 7, 0, 155);
    flush(&mut script, 0, (160, 200), 1);
    end_call(&mut script, 8, 1, 210);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios.len()), (2, 2));
    assert_eq!((&trace.ios[0].requests[..], &trace.ios[1].requests[..]), (&[0][..], &[1][..]));
}

#[test]
fn who_was_served_is_not_guessed() {
    let mut script = Script::new();
    // Two wait, on two CPUs, so maybe for two hardware queues; one is ended.
    begin_flush(&mut script, 7, 0, 100);
    begin_flush(&mut script, 8, 1, 103);
    flush(&mut script, 0, (110, 150), 1);
    end_call(&mut script, 7, 0, 160);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios.len()), (1, 0));
    assert!(trace.account.ios_incomplete >= 1);
}

#[test]
fn data_between_two_flushes_is_an_io_of_three_requests() {
    let mut script = Script::new();
    let (bio, data) = (extent("FWFS", 64, 8), extent("WS", 64, 8));
    script.at(0).by(7).enter(Call::Pwritev2).at(1).block('Q', bio).at(2).block('G', bio);
    script.by(99).at(10).block('D', extent("FF", 0, 0));
    script.by(0).at(20).block('C', extent("FF", u64::MAX, 0));
    script.by(99).at(30).block('D', data).by(0).at(40).block('C', data);
    script.by(99).at(50).block('D', extent("FF", 0, 0));
    script.by(0).at(60).block('C', extent("FF", u64::MAX, 0));
    script.at(61).block('C', extent("WS", 64, 0));
    script.by(7).at(70).exit(Call::Pwritev2, 4096);
    let trace = script.follow();
    assert_eq!((trace.account.matched, counted(&trace)), (3, 3), "{:#?}", trace.account);
    assert_eq!(trace.ios[0].requests.len(), 3);
    assert_eq!(trace.ios[0].bytes, 4096);
    let expected = Spans { submission_ns: 1, block_ns: 29, device_ns: 30, post_ns: 10 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn the_end_of_a_sequence_may_show_where_the_data_ends() {
    let mut script = Script::new();
    let (bio, data) = (extent("WFS", 64, 8), extent("WS", 64, 8));
    script.at(0).by(7).enter(Call::Pwritev2).at(1).block('Q', bio).at(2).block('G', bio);
    script.at(30).block('D', data).by(0).at(40).block('C', data);
    script.by(99).at(50).block('D', extent("FF", 0, 0));
    script.by(0).at(60).block('C', extent("FF", u64::MAX, 0));
    script.at(61).block('C', extent("WS", 72, 0));
    script.by(7).at(70).exit(Call::Pwritev2, 4096);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios[0].requests.len()), (2, 2));
}

#[test]
fn a_device_that_writes_through_itself_needs_no_sequence() {
    let mut script = Script::new();
    let data = extent("WFS", 64, 8);
    script.at(0).by(7).enter(Call::Pwritev2).at(1).block('Q', data).at(2).block('G', data);
    script.at(30).block('D', data).by(0).at(40).block('C', data);
    script.by(7).at(70).exit(Call::Pwritev2, 4096);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios[0].requests.len()), (1, 1));
}

#[test]
fn who_comes_after_one_that_ended_unissued_waits_for_no_flush() {
    let mut script = Script::new();
    let before = extent("FWS", 64, 8);
    script.by(7).at(10).block('Q', before).block('G', before);
    script.by(0).at(20).block('C', extent("WS", 64, 8));
    let write = extent("W", 128, 8);
    script.by(8).at(30).block('Q', write).block('G', write);
    flush(&mut script, 0, (40, 50), 0);
    script.by(8).at(60).block('D', write).by(0).at(70).block('C', write);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.unmatched_count), (2, 1));
    let flush = &trace.requests[0];
    assert_eq!((flush.marks.get(Mark::Issued), flush.marks.get(Mark::Queued)), (Some(40), None));
}

#[test]
fn one_of_another_sector_waits_on_while_a_flush_serves_the_first() {
    let mut script = Script::new();
    // Device mapper's flush has a sector, and its CPU another hardware queue.
    let mapped = extent("FWS", 4_096, 0);
    begin_flush(&mut script, 7, 0, 100);
    script.on(1).at(103).by(8).enter(Call::Fsync).block('Q', mapped).block('G', mapped);
    flush(&mut script, 0, (110, 150), 1);
    end_call(&mut script, 7, 0, 160);
    script.on(1).by(99).at(170).block('D', extent("FF", 0, 0));
    script.by(0).at(180).block('C', extent("FF", u64::MAX, 0)).block('C', extent("WS", 4_096, 0));
    end_call(&mut script, 8, 1, 190);
    let trace = script.follow();
    let requests: Vec<_> = trace.ios.iter().map(|io| (io.pid, &io.requests[..])).collect();
    assert_eq!(requests, [(7, &[0][..]), (8, &[1][..])], "{:#?}", trace.account);
}
