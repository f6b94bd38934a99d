// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an I/O took long: each cause from a trace in which it is the only one that can be.

use steadyio_trace::event::{Call, Comm, OpKind};
use steadyio_trace::io::{Origin, Request};
use steadyio_trace::report::cause::{Cause, Fact};

use crate::made::{Made, US, pieces, request};

/// A read with all its steps short.
fn quick_read(queued_us: u64) -> Request {
    request(OpKind::Read, 4096, queued_us, [1, 1, 1, 1, 90, 1])
}

/// A read that waits so long between insert and issue.
fn waiting_read(queued_us: u64, wait_us: u64) -> Request {
    request(OpKind::Read, 4096, queued_us, [1, 1, wait_us, 1, 90, 1])
}

/// The causes of one read between usual ones, with other requests around it.
fn causes(own: Vec<Request>, others: Vec<Request>) -> Vec<Cause> {
    let mut made = Made::default();
    made.usual_reads(20);
    made.io(Call::Pread64, 4096, (20, 10), own);
    for other in others {
        made.request(other);
    }
    made.causes()
}

fn names(causes: &[Cause]) -> Vec<String> {
    let name = |cause| serde_json::to_value(cause).unwrap()["cause"].as_str().unwrap().to_string();
    causes.iter().map(name).collect()
}

#[test]
fn the_request_that_it_waited_behind_is_named() {
    let split = request(OpKind::Write, 524_288, 1_000, [1, 1, 1, 1, 9_000, 1]);
    let stays = pieces(&[(1_004, 5_000, 262_144), (5_500, 10_004, 262_144)]);
    let (pid, comm) = (55, Comm::new(b"kworker"));
    let origin = Origin::Writeback(Some(12));
    let long = Request { pid, comm, origin, pieces: stays, ..split };
    let short = request(OpKind::Read, 8192, 9_900, [1, 1, 1, 1, 20, 1]);
    let causes = causes(vec![waiting_read(2_000, 8_000)], vec![long, short]);
    let [Cause { ns, what: Fact::Behind { requests, longest }, .. }] = &causes[..] else {
        panic!("{causes:?}");
    };
    // In the block layer from 2,000 to 10,003; the other in flight 2,000-5,000 and 5,500-10,003.
    assert_eq!((*ns, *requests), (7_503 * US, 2));
    assert_eq!((longest.op, longest.bytes, longest.pieces), ("write", 524_288, 2));
    assert_eq!((longest.origin, longest.inode), ("writeback", Some(12)));
    assert_eq!((longest.pid, &*longest.comm), (55, "kworker"));
    assert_eq!((longest.overlap_ns, longest.device_ns), (7_503 * US, 8_500 * US));
}

#[test]
fn a_request_that_shares_the_device_names_whom_with() {
    let own = request(OpKind::Read, 4096, 2_000, [1, 1, 1, 1, 4_000, 1]);
    let write = request(OpKind::Write, 524_288, 2_990, [1, 1, 1, 1, 3_000, 1]);
    let found = causes(vec![own], vec![write]);
    assert_eq!(names(&found), ["device_slow", "shared"]);
    let Cause { ns, what: Fact::Shared { requests: 1, longest }, .. } = &found[1] else {
        panic!("{found:?}")
    };
    assert_eq!((*ns, longest.op, longest.device_ns), (3_000 * US, "write", 3_000 * US));
}

#[test]
fn requests_of_other_devices_and_other_times_are_not_in_the_way() {
    let other = request(OpKind::Write, 524_288, 1_000, [1, 1, 1, 1, 9_000, 1]);
    let dev = steadyio_trace::event::Dev { major: 8, minor: 0 };
    let elsewhere = Request { dev, ..other };
    let earlier = request(OpKind::Write, 524_288, 1_000, [1, 1, 1, 1, 900, 1]);
    let found = causes(vec![waiting_read(2_000, 8_000)], vec![elsewhere, earlier]);
    assert_eq!(found, [], "the cause is not known");
}

#[test]
fn a_flush_in_flight_is_told_apart_from_an_own_flush() {
    let flush = |queued_us| request(OpKind::Flush, 0, queued_us, [1, 1, 1, 1, 5_000, 1]);
    let found = causes(vec![waiting_read(2_000, 6_000)], vec![flush(1_990)]);
    assert_eq!(names(&found), ["behind", "flush"]);
    assert!(
        matches!(found[1], Cause { ns, what: Fact::Flush { own: false, requests: 1 }, .. } if ns == 4_994 * US)
    );
    let mut made = Made::default();
    made.io(Call::Fsync, 0, (20, 10), vec![quick_read(1_000), flush(2_000)]);
    let found = made.causes();
    assert_eq!(found, [Fact::Flush { own: true, requests: 1 }.lasting(5_000 * US)]);
}

#[test]
fn a_discard_in_flight_is_named_when_the_device_is_slow_under_it() {
    let slow = request(OpKind::Read, 4096, 2_000, [1, 1, 1, 1, 4_000, 1]);
    let discard = request(OpKind::Discard, 1 << 20, 1_990, [1, 1, 1, 1, 3_000, 1]);
    let found = causes(vec![slow], vec![discard]);
    let excess_ns = 3_910 * US;
    let (device_ns, p50_ns) = (4_000 * US, 90 * US);
    let (op, bytes) = ("read", 4096);
    let slow = Fact::DeviceSlow { op, bytes, device_ns, p50_ns, of_count: 21, others: 1 }
        .lasting(excess_ns);
    assert_eq!(found, [slow, Fact::Discard { own: false, requests: 1 }.lasting(2_994 * US)]);
}

#[test]
fn with_few_requests_of_its_kind_a_device_is_not_called_slow() {
    let mut made = Made::default();
    made.usual_reads(5);
    let slow = request(OpKind::Read, 4096, 2_000, [1, 1, 1, 1, 4_000, 1]);
    made.io(Call::Pread64, 4096, (20, 10), vec![slow]);
    assert_eq!(made.causes(), []);
}

#[test]
fn requeues_and_pieces_are_told_with_the_time_between_them() {
    let slow = request(OpKind::Read, 524_288, 2_000, [1, 1, 1, 1, 6_000, 1]);
    let stays = [(2_003, 2_100, 0), (4_100, 5_000, 262_144), (6_500, 8_004, 262_144)];
    let own = Request { pieces: pieces(&stays), requeues: 1, ..slow };
    let found = causes(vec![own], Vec::new());
    assert_eq!(
        found,
        [
            Fact::Requeued { times: 1 }.lasting(2_000 * US),
            Fact::Pieces { pieces: 2 }.lasting(1_500 * US),
        ]
    );
}

#[test]
fn a_cut_bio_costs_the_time_from_the_first_part_to_the_last() {
    let part = |queued_us| Request { cut_from_bio: true, ..quick_read(queued_us) };
    let found = causes(vec![part(2_000), part(2_010), part(2_900)], Vec::new());
    assert_eq!(found, [Fact::Cut { requests: 3 }.lasting(900 * US)]);
}

#[test]
fn bios_that_are_merged_keep_the_first_waiting() {
    let merged_queued_ns = vec![2_100 * US, 2_700 * US];
    let own = Request { merged_queued_ns, ..waiting_read(2_000, 800) };
    let found = causes(vec![own], Vec::new());
    assert_eq!(found, [Fact::Merged { bios: 2 }.lasting(700 * US)]);
}

#[test]
fn a_wait_for_a_tag_is_told() {
    let own = request(OpKind::Read, 4096, 2_000, [3_000, 1, 1, 1, 90, 1]);
    assert_eq!(causes(vec![own], Vec::new()), [Fact::TagWait.lasting(3_000 * US)]);
}

#[test]
fn a_sync_that_sleeps_while_the_journal_writes_waits_for_the_journal() {
    let mut made = Made::default();
    // Its own request is over long before the journal begins.
    made.io(Call::Fsync, 0, (20, 9_000), vec![quick_read(1_000)]);
    for queued_us in [2_000, 4_000] {
        let write = request(OpKind::Write, 4096, queued_us, [1, 1, 1, 1, 1_500, 1]);
        made.request(Request { origin: Origin::Journal, ..write });
    }
    assert_eq!(made.causes(), [Fact::Journal { requests: 2 }.lasting(2 * 1_505 * US)]);
}

#[test]
fn a_sync_may_wait_for_writeback_and_a_read_does_not() {
    let beside = |kind, call| {
        let mut made = Made::default();
        let own = request(kind, 4096, 1_000, [1, 1, 1, 1, 90, 1]);
        made.io(call, 4096, (20, 9_000), vec![own]);
        let write = request(OpKind::Write, 65_536, 2_000, [1, 1, 1, 1, 5_000, 1]);
        made.request(Request { origin: Origin::Writeback(Some(12)), ..write });
        made.causes()
    };
    let writeback = Fact::Writeback { requests: 1 }.lasting(5_005 * US);
    assert_eq!(beside(OpKind::Write, Call::Fsync), [writeback]);
    assert_eq!(beside(OpKind::Read, Call::Read), []);
}

#[test]
fn what_takes_less_than_a_tenth_is_no_cause() {
    let tag = |wait_us| request(OpKind::Read, 4096, 2_000, [wait_us, 1, 1, 1, 90, 1]);
    assert_eq!(names(&causes(vec![tag(14)], Vec::new())), ["tag_wait"], "14 of 138 us");
    assert_eq!(causes(vec![tag(13)], Vec::new()), [], "13 of 137 us");
}

#[test]
fn the_largest_span_stands_beside_its_median() {
    let mut made = Made::default();
    made.usual_reads(20);
    made.io(Call::Pread64, 4096, (20, 10), vec![waiting_read(2_000, 8_000)]);
    let record = made.record();
    let worst = &record.worst_ios[0];
    assert_eq!((worst.largest.span, worst.largest.ns), ("block", 8_003 * US));
    assert_eq!((worst.largest.p50_ns, worst.largest.of_count), (10 * US, 21));
    assert_eq!((worst.at_ns, worst.total_ns), (1_980 * US, 8_124 * US));
    assert_eq!((worst.pid, &*worst.comm, worst.call), (7, "reader", Some("pread64")));
    let order: Vec<u64> = record.worst_ios.iter().map(|worst| worst.total_ns).collect();
    assert!(order.is_sorted_by(|a, b| a >= b) && order.len() == 3, "{order:?}");
}
