// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an I/O took long: each cause from a trace in which it is the only one that can be.

use steadyio_trace::event::{Call, Comm, OpKind};
use steadyio_trace::io::{Origin, Request};

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
fn causes(own: Vec<Request>, others: Vec<Request>) -> Vec<String> {
    let mut made = Made::default();
    made.usual_reads(20);
    made.io(Call::Pread64, 4096, (20, 10), own);
    for other in others {
        made.request(other);
    }
    made.causes()
}

/// A request that is the device's for so long, and for little longer the block layer's.
fn long(kind: OpKind, bytes: u64, queued_us: u64, device_us: u64) -> Request {
    request(kind, bytes, queued_us, [1, 1, 1, 1, device_us, 1])
}

#[test]
fn the_request_that_it_waited_behind_is_named() {
    let stays = pieces(&[(1_004, 5_000, 262_144), (5_500, 10_004, 262_144)]);
    let (pid, comm) = (55, Comm::new(b"kworker"));
    let origin = Origin::Writeback(Some(12));
    let split = long(OpKind::Write, 524_288, 1_000, 9_000);
    let split = Request { pid, comm, origin, pieces: stays, ..split };
    let short = long(OpKind::Read, 8192, 9_900, 20);
    // In the block layer from 2,000 to 10,003; the other in flight 2,000-5,000 and 5,500-10,003.
    let expected = "7503.0 us queued in the block layer behind 2 requests in flight, longest: write 512 KiB sector 1000 \
                    by kworker (55), writeback of inode 12, 2 pieces, 7503.0 of its 8500.0 us in flight";
    assert_eq!(causes(vec![waiting_read(2_000, 8_000)], vec![split, short]), [expected]);
}

#[test]
fn a_request_that_shares_the_device_names_whom_with() {
    let own = long(OpKind::Read, 4096, 2_000, 4_000);
    let write = long(OpKind::Write, 524_288, 2_990, 3_000);
    let expected = [
        "3910.0 us because the device was slower than usual: 4000.0 us for read 4 KiB (median 90.0 of 21 alike), \
         1 other in flight",
        "3000.0 us in flight together with 1 other request, longest: write 512 KiB sector 2990 by writer (100), \
         no system call seen, 3000.0 of its 3000.0 us in flight",
    ];
    assert_eq!(causes(vec![own], vec![write]), expected);
}

#[test]
fn requests_of_other_devices_and_other_times_are_not_in_the_way() {
    let dev = steadyio_trace::event::Dev { major: 8, minor: 0 };
    let elsewhere = Request { dev, ..long(OpKind::Write, 524_288, 1_000, 9_000) };
    let earlier = long(OpKind::Write, 524_288, 1_000, 900);
    let found = causes(vec![waiting_read(2_000, 8_000)], vec![elsewhere, earlier]);
    assert!(found.is_empty(), "the cause is not known: {found:?}");
}

#[test]
fn a_flush_in_flight_is_told_apart_from_an_own_flush() {
    let flush = |queued_us| long(OpKind::Flush, 0, queued_us, 5_000);
    let found = causes(vec![waiting_read(2_000, 6_000)], vec![flush(1_990)]);
    assert!(found[0].contains("longest: flush sector 1990 by writer (100)"), "{found:?}");
    assert_eq!(found[1..], ["4994.0 us with 1 flush in flight"]);
    let mut made = Made::default();
    made.io(Call::Fsync, 0, (20, 10), vec![quick_read(1_000), flush(2_000)]);
    assert_eq!(made.causes(), ["5000.0 us in its own flush"]);
}

#[test]
fn a_discard_in_flight_is_named_when_the_device_is_slow_under_it() {
    let slow = long(OpKind::Read, 4096, 2_000, 4_000);
    let found = causes(vec![slow], vec![long(OpKind::Discard, 1 << 20, 1_990, 3_000)]);
    assert!(found[0].ends_with("1 other in flight"), "{found:?}");
    assert_eq!(found[1..], ["2994.0 us with 1 discard in flight"]);
}

#[test]
fn with_few_requests_of_its_kind_a_device_is_not_called_slow() {
    let slow_among = |count| {
        let mut made = Made::default();
        made.usual_reads(count);
        made.io(Call::Pread64, 4096, (20, 10), vec![long(OpKind::Read, 4096, 2_000, 4_000)]);
        made.causes()
    };
    assert_eq!(slow_among(8), [""; 0]);
    assert!(slow_among(9)[0].ends_with("(median 90.0 of 10 alike), no other in flight"));
}

#[test]
fn what_the_block_layer_did_with_the_request_costs_the_time_until_it_was_done() {
    let stays = [(2_003, 2_100, 0), (4_100, 5_000, 262_144), (6_500, 8_004, 262_144)];
    let split = long(OpKind::Read, 524_288, 2_000, 6_000);
    let split = Request { pieces: pieces(&stays), requeues: 1, ..split };
    let part = |queued_us| Request { cut_from_bio: true, ..quick_read(queued_us) };
    let merged_queued_ns = vec![2_100 * US, 2_700 * US];
    let merged = Request { merged_queued_ns, ..waiting_read(2_000, 800) };
    let tag = request(OpKind::Read, 4096, 2_000, [3_000, 1, 1, 1, 90, 1]);
    let cases: [(Vec<Request>, &[&str]); 4] = [
        (
            vec![split],
            &[
                "2000.0 us requeued by the driver 1 time",
                "1500.0 us between the 2 pieces it was served in",
            ],
        ),
        (
            vec![part(2_000), part(2_010), part(2_900)],
            &["900.0 us between completions: the bio was split into 3 requests"],
        ),
        (vec![merged], &["700.0 us until the last bio was merged into it (2 merges)"]),
        (vec![tag], &["3000.0 us waiting for a tag, or throttled"]),
    ];
    for (own, expected) in cases {
        assert_eq!(causes(own, Vec::new()), expected);
    }
}

#[test]
fn a_sync_that_sleeps_while_the_journal_writes_waits_for_the_journal() {
    let mut made = Made::default();
    // Its own request is over long before the journal begins.
    made.io(Call::Fsync, 0, (20, 9_000), vec![quick_read(1_000)]);
    for queued_us in [2_000, 4_000] {
        let write = long(OpKind::Write, 4096, queued_us, 1_500);
        made.request(Request { origin: Origin::Journal, ..write });
    }
    let expected = "3010.0 us with 2 journal requests pending and none of its own";
    assert_eq!(made.causes(), [expected]);
}

#[test]
fn a_sync_may_wait_for_writeback_and_a_read_does_not() {
    let beside = |kind, call| {
        let mut made = Made::default();
        made.io(call, 4096, (20, 9_000), vec![long(kind, 4096, 1_000, 90)]);
        let write = long(OpKind::Write, 65_536, 2_000, 5_000);
        made.request(Request { origin: Origin::Writeback(Some(12)), ..write });
        made.causes()
    };
    let expected = "5005.0 us with 1 writeback request pending and none of its own";
    assert_eq!(beside(OpKind::Write, Call::Fsync), [expected]);
    assert_eq!(beside(OpKind::Read, Call::Read), [""; 0]);
}

#[test]
fn what_takes_less_than_a_tenth_is_no_cause() {
    let tag = |wait_us| request(OpKind::Read, 4096, 2_000, [wait_us, 1, 1, 1, 90, 1]);
    assert_eq!(causes(vec![tag(14)], vec![]).len(), 1, "14 of 138 us");
    assert_eq!(causes(vec![tag(13)], vec![]).len(), 0, "13 of 137 us");
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
