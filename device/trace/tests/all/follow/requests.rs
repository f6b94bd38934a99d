// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and I/Os from sequences of events as kernels emit them, a behaviour per test.

use steadyio_trace::event::{Call, Dev, EventKind, Extent};
use steadyio_trace::io::{Mark, Origin, Spans, Trace};

use crate::events::{DISK, Script, counted, extent};

/// Matched requests only, so many.
fn all_matched(trace: &Trace, count: u64) {
    assert_eq!(trace.account.matched, count, "{:#?}", trace.account);
    assert_eq!(counted(trace), count, "{:#?}", trace.account);
}

/// pread of 4 KiB, each layer 10 ns.
fn read(script: &mut Script, pid: u32, at_ns: u64, sector: u64) {
    let place = extent("RS", sector, 8);
    script.at(at_ns).by(pid).enter(Call::Pread64);
    script.at(at_ns + 10).block('Q', place).at(at_ns + 20).block('G', place);
    script.at(at_ns + 30).block('I', place).at(at_ns + 40).block('D', place);
    script.at(at_ns + 90).by(0).block('C', place);
    script.at(at_ns + 100).by(pid).exit(Call::Pread64, 4096);
}

#[test]
fn a_request_that_is_issued_again_tells_that_requeues_are_not_traced() {
    let place = extent("W", 64, 8);
    let missing = |with_requeue: bool| {
        let mut script = Script::new();
        script.at(0).by(1).block('Q', place).block('G', place).block('D', place);
        if with_requeue {
            script.at(5).block('R', place);
        }
        script.at(10).block('D', place).at(20).block('C', place);
        let missing = script.follow().missing;
        missing.iter().any(|event| event.event == "block:block_rq_requeue")
    };
    assert!(missing(false) && !missing(true));
}

#[test]
fn two_flushes_at_once_are_no_request_that_is_issued_again() {
    let mut script = Script::new();
    let flush = extent("FF", 0, 0);
    script.at(0).by(1).block('D', flush).on(1).block('D', flush);
    script.at(5).block('C', flush).at(6).block('C', flush);
    let missing = script.follow().missing;
    assert!(missing.iter().all(|event| event.event != "block:block_rq_requeue"), "{missing:?}");
}

#[test]
fn a_bio_at_the_end_of_all_sectors_can_be_cut() {
    let mut script = Script::new();
    let (whole, front) = (extent("R", u64::MAX - 3, 16), extent("R", u64::MAX - 3, 8));
    script.at(1).by(1).block('Q', whole).block('G', front).block('D', front);
    script.at(5).block('C', front);
    assert_eq!(script.follow().account.matched, 1);
}

#[test]
fn a_direct_read_has_every_mark_and_its_time_in_four_spans() {
    let mut script = Script::new();
    read(&mut script, 7, 1_000, 64);
    let trace = script.follow();
    all_matched(&trace, 1);
    let request = &trace.requests[0];
    let expected = [Some(1010), Some(1020), Some(1030), Some(1040), None, None, Some(1090)];
    assert_eq!(request.marks.0, expected);
    assert_eq!((request.sector, request.bytes, request.pid), (64, 4096, 7));
    assert_eq!(request.origin, Origin::Io(0));
    let io = &trace.ios[0];
    assert_eq!(
        (io.call, io.entered_ns, io.exited_ns, io.bytes),
        (Call::Pread64, 1_000, 1_100, 4096)
    );
    let expected = Spans { submission_ns: 10, block_ns: 30, device_ns: 50, post_ns: 10 };
    assert_eq!(io.spans, expected);
}

#[test]
fn a_request_of_no_system_call_is_a_threads() {
    let mut script = Script::new();
    let place = extent("W", 64, 8);
    script.at(1).by(9).block('Q', place).block('G', place).block('D', place);
    script.at(5).block('C', place);
    let trace = script.follow();
    all_matched(&trace, 1);
    assert_eq!(trace.requests[0].origin, Origin::Thread);
    assert!(trace.ios.is_empty());
}

#[test]
fn a_call_served_from_memory_is_counted_only() {
    let mut script = Script::new();
    script.at(1).by(9).enter(Call::Read).at(2).exit(Call::Read, 4096);
    let trace = script.follow();
    assert!(trace.ios.is_empty());
    assert_eq!(trace.account.calls_without_request, 1);
}

#[test]
fn a_bio_that_is_cut_gives_two_requests_of_one_io() {
    let mut script = Script::new();
    let (whole, front, rest) = (extent("R", 0, 16), extent("R", 0, 8), extent("R", 8, 8));
    script.at(0).by(7).enter(Call::Pread64).at(10).block('Q', whole);
    script.what(EventKind::BioSplit { bio: extent("R", 0, 0), new_sector: 8 });
    script.at(20).block('G', front).at(30).block('G', rest);
    script.at(40).block('D', front).at(50).block('D', rest);
    script.at(60).block('C', front).at(80).block('C', rest);
    script.at(90).exit(Call::Pread64, 8192);
    let trace = script.follow();
    all_matched(&trace, 2);
    assert!(trace.requests.iter().all(|request| request.cut_from_bio));
    assert!(trace.requests.iter().all(|request| request.marks.get(Mark::Queued) == Some(10)));
    assert_eq!(trace.ios[0].requests, [0, 1]);
    let expected = Spans { submission_ns: 10, block_ns: 30, device_ns: 40, post_ns: 10 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn merged_bios_make_one_request_of_several_ios() {
    let mut script = Script::new();
    let (first, back, front) = (extent("W", 16, 8), extent("W", 24, 8), extent("W", 8, 8));
    script.at(0).by(1).enter(Call::Pwrite64).at(10).block('Q', first).at(11).block('G', first);
    script.at(12).block('I', first);
    script.at(20).by(2).enter(Call::Pwrite64).at(21).block('Q', back).at(22).block('M', back);
    script.at(30).by(3).enter(Call::Pwrite64).at(31).block('Q', front).at(32).block('F', front);
    script.at(40).by(0).block('D', extent("W", 8, 24)).at(60).block('C', extent("W", 8, 24));
    for pid in 1..=3 {
        script.at(70).by(pid).exit(Call::Pwrite64, 4096);
    }
    let trace = script.follow();
    all_matched(&trace, 1);
    let request = &trace.requests[0];
    assert_eq!((request.sector, request.bytes), (8, 24 * 512));
    assert_eq!(request.merged_queued_ns, [21, 31]);
    assert_eq!(trace.ios.len(), 3);
    assert!(trace.ios.iter().all(|io| io.requests == [0]));
    let second = trace.ios.iter().find(|io| io.pid == 2).unwrap();
    let expected = Spans { submission_ns: 1, block_ns: 19, device_ns: 20, post_ns: 10 };
    assert_eq!(second.spans, expected, "its bio came at 21");
}

#[test]
fn a_request_merged_into_another_brings_its_bios() {
    let mut script = Script::new();
    let (first, next) = (extent("W", 0, 8), extent("W", 8, 8));
    for (pid, place) in [(1, first), (2, next)] {
        script.at(u64::from(pid)).by(pid).enter(Call::Pwrite64).block('Q', place);
        script.block('G', place).block('I', place);
    }
    script.at(10).block('m', next);
    script.at(20).by(0).block('D', extent("W", 0, 16)).at(30).block('C', extent("W", 0, 16));
    script.at(40).by(1).exit(Call::Pwrite64, 4096).by(2).exit(Call::Pwrite64, 4096);
    let trace = script.follow();
    all_matched(&trace, 1);
    assert_eq!(trace.requests[0].merged_queued_ns, [2]);
    assert_eq!(trace.ios.len(), 2);
}

#[test]
fn a_partition_is_followed_to_its_disk() {
    let mut script = Script::new();
    let place = extent("R", 2_048 + 8, 8);
    let partition = Dev { major: 179, minor: 1 };
    script.at(0).by(1).enter(Call::Read).at(1);
    script.what(EventKind::BioRemap { to: place, from: (partition, 8) }).block('Q', place);
    script.block('G', place).block('D', place).at(9).block('C', place).exit(Call::Read, 4096);
    let trace = script.follow();
    all_matched(&trace, 1);
    assert_eq!((trace.requests[0].dev, trace.ios.len()), (DISK, 1));
    assert_eq!(trace.requests[0].through, [partition]);
}

#[test]
fn what_goes_through_a_stacked_device_on_a_partition_is_one_io() {
    let stacked = Dev { major: 253, minor: 0 };
    let partition = Dev { major: 179, minor: 1 };
    let above = Extent { dev: stacked, ..extent("R", 8, 8) };
    // Device mapper says the disk's number with the partition's sector.
    let (within, below) = (extent("R", 100, 8), extent("R", 2_148, 8));
    let mut script = Script::new();
    script.at(0).by(1).enter(Call::Pread64).at(10).block('Q', above);
    script.at(11).what(EventKind::BioRemap { to: within, from: (stacked, 8) });
    script.at(12).what(EventKind::BioRemap { to: below, from: (partition, 100) }).block('Q', below);
    script.at(13).block('G', below).block('D', below);
    script.at(20).by(0).block('C', below).at(25).by(1).exit(Call::Pread64, 4096);
    let trace = script.follow();
    all_matched(&trace, 1);
    let request = &trace.requests[0];
    assert_eq!((request.dev, &request.through[..]), (DISK, &[stacked, partition][..]));
    assert_eq!(request.marks.get(Mark::Queued), Some(10), "where it came in");
    assert_eq!(trace.ios[0].requests, [0]);
}

#[test]
fn what_a_stacked_devices_own_thread_submits_came_through_that_device() {
    let stacked = Dev { major: 253, minor: 0 };
    let partition = Dev { major: 179, minor: 1 };
    let (above, within) = (Extent { dev: stacked, ..extent("W", 8, 8) }, extent("W", 100, 8));
    let (below, other) = (extent("W", 2_148, 8), extent("W", 4_000, 8));
    let mut script = Script::new();
    // A worker encrypts it, so the writer is not to be seen below.
    script.at(0).by(1).block('Q', above);
    script.at(5).by(2).what(EventKind::BioRemap { to: within, from: (stacked, 8) });
    script.what(EventKind::BioRemap { to: below, from: (partition, 100) });
    for place in [below, other] {
        script.block('Q', place).block('G', place).block('D', place).at(9).block('C', place);
    }
    let trace = script.follow();
    all_matched(&trace, 2);
    assert_eq!(trace.requests[0].through, [stacked, partition]);
    assert_eq!(trace.requests[1].through, [], "only what is queued next");
}

#[test]
fn pieces_of_a_split_at_dispatch_are_stays_of_one_request() {
    let mut script = Script::new();
    let whole = extent("W", 0, 16);
    let pieces = [extent("W", 0, 8), extent("W", 8, 8)];
    script.at(0).by(1).enter(Call::Pwrite64).at(1).block('Q', whole).block('G', whole);
    script.block('I', whole).at(10).block('D', pieces[0]);
    script.at(30).by(0).block('C', pieces[0]).at(31).block('R', pieces[1]);
    script.at(35).by(8).block('I', pieces[1]).at(40).block('D', pieces[1]);
    script.at(60).by(0).block('C', pieces[1]).at(70).by(1).exit(Call::Pwrite64, 8192);
    let trace = script.follow();
    all_matched(&trace, 1);
    let request = &trace.requests[0];
    assert_eq!((request.bytes, request.requeues), (8192, 0));
    let stays: Vec<(u64, u64, u64)> =
        request.pieces.iter().map(|p| (p.issued_ns, p.ended_ns, p.bytes)).collect();
    assert_eq!(stays, [(10, 30, 4096), (40, 60, 4096)]);
    let expected = Spans { submission_ns: 1, block_ns: 19, device_ns: 40, post_ns: 10 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn a_requeue_ends_a_stay_that_served_nothing() {
    let mut script = Script::new();
    let place = extent("R", 0, 8);
    script.at(0).by(1).block('Q', place).block('G', place).at(10).block('D', place);
    script.at(12).block('R', place).at(20).block('D', place).at(30).block('C', place);
    let trace = script.follow();
    all_matched(&trace, 1);
    let request = &trace.requests[0];
    assert_eq!((request.requeues, request.pieces.len()), (1, 2));
    assert_eq!((request.pieces[0].ended_ns, request.pieces[0].bytes), (12, 0));
    assert_eq!(request.marks.get(Mark::Issued), Some(10), "for the first time");
}

#[test]
fn two_alike_at_one_place_are_not_guessed() {
    let mut script = Script::new();
    let place = extent("R", 0, 8);
    for pid in [1, 2] {
        script.at(u64::from(pid)).by(pid).block('Q', place).block('G', place).block('D', place);
    }
    script.at(10).by(0).block('C', place).at(11).block('C', place);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.unmatched_count), (0, 2));
    assert!(trace.account.unmatched[0].why.contains("told apart"));
}

#[test]
fn two_in_the_scheduler_at_one_place_are_two_without_allocations_too() {
    let mut script = Script::new();
    let (short, long, later) = (extent("R", 64, 8), extent("R", 64, 16), extent("R", 72, 8));
    script.at(1).by(1).block('I', short).by(2).block('I', long);
    script.at(5).block('D', short).at(10).block('C', short);
    script.at(11).block('D', long).at(20).block('C', long);
    script.at(900).by(3).block('I', later).block('D', later).at(910).block('C', later);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.unmatched_count), (1, 2), "{trace:#?}");
    assert_eq!(trace.requests[0].marks.get(Mark::Inserted), Some(900));
}

#[test]
fn one_after_the_other_at_one_place_is_no_trouble() {
    let mut script = Script::new();
    (0..10).for_each(|nth| read(&mut script, 7, nth * 1_000, 64));
    all_matched(&script.follow(), 10);
}

#[test]
fn what_began_before_the_trace_or_ends_after_it_is_at_the_edges() {
    let mut script = Script::new();
    let (early, late) = (extent("R", 0, 8), extent("R", 8, 8));
    script.at(1).by(0).block('C', early);
    script.at(2).by(1).block('Q', late).block('G', late).block('D', late);
    let trace = script.follow();
    assert_eq!((trace.account.at_the_edges, counted(&trace)), (2, 2));
}

#[test]
fn an_end_without_a_request_makes_the_end_before_it_unknown() {
    let mut script = Script::new();
    let place = extent("WS", 64, 8);
    script.at(1).by(1).block('D', place).at(2).by(0).block('C', place);
    script.at(3).block('C', extent("WS", 72, 8)).at(900).block('C', place);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.at_the_edges), (0, 3), "{:#?}", trace.account);
}

#[test]
fn a_request_that_swallows_one_from_before_the_trace_is_at_the_edges() {
    let mut script = Script::new();
    read(&mut script, 7, 100, 240);
    script.at(300).by(8).block('I', extent("W", 240, 8)).block('m', extent("W", 248, 16));
    script.at(310).block('D', extent("W", 240, 24)).at(320).block('C', extent("W", 240, 24));
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.at_the_edges), (1, 1), "{:#?}", trace.account);
    assert_eq!(counted(&trace), 2);
}

#[test]
fn what_is_mixed_up_with_one_from_before_the_trace_is_at_the_edges() {
    let mut script = Script::new();
    let place = extent("W", 64, 8);
    script.at(1).by(8).block('R', place);
    script.at(10).by(7).block('Q', place).block('G', place);
    script.at(20).block('R', place).at(30).block('D', place).at(40).block('C', place);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.at_the_edges), (0, 2), "{:#?}", trace.account);
    assert_eq!(counted(&trace), 2);
}

#[test]
fn a_loss_leaves_nothing_that_it_may_have_touched() {
    let mut script = Script::new();
    read(&mut script, 7, 0, 64);
    let place = extent("R", 128, 8);
    script.at(200).by(1).block('Q', place).block('G', place).block('D', place);
    // CPU 1 says at 300 that it lost events since 150: the end of `place` may be among them.
    script.at(300).on(1).what(EventKind::Lost { count: 3, since_ns: Some(150) });
    script.at(310).on(0).by(0).block('C', place);
    read(&mut script, 7, 400, 64);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.hit_by_loss), (2, 1), "{:#?}", trace.account);
    assert_eq!(trace.account.events_lost, 3);
    assert_eq!(trace.ios.len(), 2);
}

#[test]
fn what_ended_in_the_time_of_a_loss_is_taken_back() {
    let mut script = Script::new();
    read(&mut script, 7, 0, 64);
    read(&mut script, 7, 200, 64);
    script.at(400).on(1).what(EventKind::Lost { count: 1, since_ns: Some(150) });
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.hit_by_loss), (1, 1));
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (1, 1));
}

#[test]
fn a_failed_request_keeps_its_error() {
    let mut script = Script::new();
    let place = extent("R", 0, 8);
    script.at(0).by(1).enter(Call::Read).block('Q', place).block('G', place).block('D', place);
    script.at(5).by(0).what(EventKind::Complete { extent: place, error: -5 });
    script.at(9).by(1).exit(Call::Read, -5);
    let trace = script.follow();
    all_matched(&trace, 1);
    assert_eq!((trace.requests[0].error, trace.ios[0].bytes), (-5, 0));
}

#[test]
fn a_request_that_the_driver_refused_is_unmatched_with_the_reason() {
    let mut script = Script::new();
    let place = extent("R", 0, 8);
    script.at(0).by(1).block('Q', place).block('G', place);
    script.at(5).what(EventKind::Complete { extent: place, error: -5 });
    let trace = script.follow();
    assert_eq!((trace.account.unmatched_count, counted(&trace)), (1, 1));
    assert!(trace.account.unmatched[0].why.contains("never issued"));
}

#[test]
fn passthrough_is_followed_without_a_sector() {
    let mut script = Script::new();
    script.at(1).by(1).block('D', extent("N", 0, 0));
    script.at(5).by(0).block('C', extent("N", u64::MAX, 8));
    let trace = script.follow();
    all_matched(&trace, 1);
    assert_eq!(
        (trace.requests[0].bytes, trace.requests[0].marks.get(Mark::Completed)),
        (0, Some(5))
    );
}

#[test]
fn what_comes_to_a_place_where_two_were_mixed_up_is_not_reported_either() {
    let mut script = Script::new();
    let (whole, rest) = (extent("R", 0, 16), extent("R", 8, 8));
    for pid in [1, 2] {
        script.at(u64::from(pid)).by(pid).block('Q', whole).block('G', whole).block('D', whole);
    }
    // A part of one of them ends; then a third is where the other part of that one is.
    script.at(10).by(0).block('C', extent("R", 0, 8));
    script.at(11).by(3).block('Q', rest).block('G', rest).block('D', rest);
    script.at(20).by(0).block('C', rest).at(21).block('C', rest).at(22).block('C', whole);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.unmatched_count), (0, 3));
}

#[test]
fn of_several_that_one_end_fits_none_is_over_before_all_of_it_has_ended() {
    let mut script = Script::new();
    let piece = extent("W", 40, 8);
    let (last, long, early) = (extent("W", 48, 8), extent("W", 40, 16), extent("W", 32, 16));
    script.at(1).by(1).block('Q', last).block('G', last).block('D', last).block('R', last);
    script.at(2).by(2).block('Q', long).block('G', long);
    script.at(3).by(3).block('Q', early).block('G', early).block('D', extent("W", 32, 8));
    script.at(4).block('C', extent("W", 32, 8));
    // Now two begin at 40: a piece of the long one, or the rest of the early one.
    script.at(5).block('D', piece).at(6).block('R', piece).at(7).block('C', piece);
    // The request that comes back at 48 is the rest of the long one, or the last.
    script.at(8).block('R', last).at(9).block('D', last).at(10).block('C', last);
    let trace = script.follow();
    assert_eq!(trace.account.matched, 0, "{:#?}", trace.requests);
}

#[test]
fn a_request_that_came_back_as_the_trace_begins_can_still_grow() {
    let mut script = Script::new();
    let (old, front) = (extent("W", 152, 16), extent("W", 144, 8));
    script.at(1).by(1).block('R', old);
    script.at(2).by(2).block('Q', front).block('F', front);
    script.at(3).block('D', extent("W", 144, 24)).at(4).block('C', extent("W", 144, 24));
    let new = extent("W", 152, 8);
    script.at(5).block('Q', new).block('G', new).block('D', new).at(6).block('C', new);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.account.at_the_edges), (1, 1), "{:#?}", trace.account);
    assert_eq!(counted(&trace), 2);
}

/// dm-crypt: a thread of its own encrypts what is written, and submits it.
#[test]
fn a_bio_that_another_thread_remaps_is_still_of_the_call_that_queued_it() {
    let mapped = Dev { major: 253, minor: 0 };
    let (above, below) = (Extent { dev: mapped, ..extent("W", 100, 8) }, extent("W", 2148, 8));
    let remap = EventKind::BioRemap { to: below, from: (mapped, 100) };
    let write = |others: &[u32]| {
        let mut script = Script::new();
        script.by(1).at(0).enter(Call::Pwrite64).at(10).block('Q', above);
        for other in others {
            script.by(*other).at(11).block('Q', above);
        }
        script.named(50, "dmcrypt_write/25").at(40).what(remap).block('Q', below);
        script.block('G', below).at(42).block('D', below);
        script.by(0).at(90).block('C', below).by(1).at(100).exit(Call::Pwrite64, 4096);
        script.follow()
    };
    let trace = write(&[]);
    assert_eq!((trace.ios.len(), trace.requests.len()), (1, 1), "{:#?}", trace.account);
    let request = &trace.requests[0];
    assert_eq!((request.pid, request.dev, &request.through[..]), (1, below.dev, &[mapped][..]));
    assert_eq!(request.marks.get(Mark::Queued), Some(10));
    let spans = trace.ios[0].spans;
    assert_eq!((spans.submission_ns, spans.block_ns, spans.device_ns), (10, 32, 48));
    // Two at one place: whose it is, is unknown.
    let trace = write(&[2]);
    assert_eq!((trace.ios.len(), trace.requests[0].pid), (0, 50));
}
