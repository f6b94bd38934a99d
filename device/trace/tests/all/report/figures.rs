// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups, spans and percentiles of a trace, and the selection that is shown.

use std::collections::BTreeSet;

use proptest::prelude::*;
use steadyio_trace::event::{Call, Class, Dev, OpKind};
use steadyio_trace::intervals::Intervals;
use steadyio_trace::io::{Mark, Request};
use steadyio_trace::report::distribution::{Distribution, histogram};
use steadyio_trace::report::question::Question;
use steadyio_trace::report::times::StepTimes;
use steadyio_trace::source::Problems;
use steadyio_trace::source::capture::devices::{Stack, Untold};
use steadyio_trace::source::capture::threads::AskedFor;

use crate::made::{Made, STEPS_US, US, pieces, priority, question, record, request, rich, valid};

#[test]
fn between_its_pieces_a_request_of_no_io_is_in_the_block_layer() {
    let mut made = Made::default();
    let split = request(OpKind::Write, 524_288, 30_000, [1, 1, 1, 1, 5_000, 1]);
    let stays = pieces(&[(30_004, 32_000, 262_144), (33_000, 35_004, 262_144)]);
    made.request(Request { pieces: stays, ..split });
    let group = &made.record().requests[0];
    let means: Vec<(&str, f64)> =
        group.times.spans.iter().map(|span| (&*span.span, span.times.mean_ns / 1_000.0)).collect();
    assert_eq!(means, [("block", 1_004.0), ("device", 4_000.0), ("post", 1.0)]);
}

#[test]
fn spans_are_shares_of_the_mean_total_and_the_rest_of_the_device_is_software() {
    let mut made = Made::default();
    made.usual_reads(3);
    let group = &made.record().ios[0];
    assert_eq!(group.title(), "mmcblk0 read 4 KiB");
    // 20 call, 1+2+3+4 block, 90 device, 6+10 post.
    let shares: Vec<(&str, f64, f64)> = (group.times.spans.iter())
        .map(|span| (&*span.span, span.times.mean_ns, span.share_percent))
        .collect();
    assert_eq!(
        shares,
        [
            ("submission", 20_000.0, 14.7),
            ("block", 10_000.0, 7.4),
            ("device", 90_000.0, 66.2),
            ("post", 16_000.0, 11.8)
        ]
    );
    assert_eq!(group.times.software_percent, 33.8);
    assert_eq!(group.times.total.mean_ns, 136_000.0);
}

#[test]
fn steps_follow_each_other_from_the_call_to_the_return() {
    let mut made = Made::default();
    made.usual_reads(1);
    let record = made.record();
    let steps: Vec<(&str, u64)> = (record.ios[0].times.steps.iter())
        .map(|step| (&*step.step, step.times.max_ns / US))
        .collect();
    assert_eq!(
        steps,
        [
            ("call->queue", 20),
            ("queue->tag", 1),
            ("tag->insert", 2),
            ("insert->issue", 3),
            ("issue->hardware", 4),
            ("hardware", 90),
            ("hardware->completion", 6),
            ("completion->return", 10),
        ]
    );
}

#[test]
fn a_layer_that_is_not_passed_has_no_step_and_no_time_is_lost() {
    let mut made = Made::default();
    let mut bare = request(OpKind::Read, 4096, 50, STEPS_US);
    let mut marks = steadyio_trace::io::Marks::default();
    for mark in [Mark::Queued, Mark::Issued, Mark::Completed] {
        marks.set(mark, bare.marks.get(mark).unwrap());
    }
    bare.marks = marks;
    made.request(bare);
    let record = made.record();
    let times = &record.requests[0].times;
    let steps: Vec<(&str, u64)> =
        times.steps.iter().map(|step| (&*step.step, step.times.max_ns / US)).collect();
    assert_eq!(steps, [("queue->issue", 6), ("issue->completion", 100)]);
    assert_eq!(times.total.max_ns, 106 * US);
}

#[test]
fn percentiles_are_of_the_nearest_rank() {
    let of = Distribution::of((1..=1_000).rev().collect()).unwrap();
    assert_eq!((of.p50_ns, of.p99_ns, of.p999_ns, of.max_ns), (500, 990, 999, 1_000));
    assert_eq!((of.count, of.mean_ns), (1_000, 500.5));
    let one = Distribution::of(vec![7]).unwrap();
    assert_eq!((one.p50_ns, one.p999_ns), (7, 7));
    assert_eq!(Distribution::of(Vec::new()), None);
}

#[test]
fn a_histogram_counts_each_time_once_between_powers_of_two() {
    let bins = histogram(&[999, 1_000, 1_999, 9_000]);
    let of: Vec<_> = bins.iter().map(|bin| (bin.from_ns, bin.to_ns, bin.count)).collect();
    let expected = [
        (0, 1_000, 1),
        (1_000, 2_000, 2),
        (2_000, 4_000, 0),
        (4_000, 8_000, 0),
        (8_000, 16_000, 1),
    ];
    assert_eq!(of, expected);
    assert_eq!(histogram(&[]), []);
}

#[test]
fn who_waited_decides_the_section() {
    let record = rich().record();
    let titles = |groups: &[steadyio_trace::report::groups::Group]| -> Vec<String> {
        let title = |group: &steadyio_trace::report::groups::Group| {
            let origin = group.origin.clone().unwrap_or_default();
            format!("{origin} {} x{}", group.title(), group.times.count).trim().to_string()
        };
        groups.iter().map(title).collect()
    };
    let ios = ["mmcblk0 fsync x1", "mmcblk0 read 4 KiB x31", "mmcblk0 write 128 KiB x1"];
    assert_eq!(titles(&record.ios), ios);
    let requests = [
        "journal mmcblk0 write 64 KiB x1",
        "readahead mmcblk0 read 64 KiB x1",
        "thread mmcblk0 write 512 KiB x1",
        "writeback mmcblk0 write 64 KiB x1",
    ];
    assert_eq!(titles(&record.requests), requests);
    let others = ["io mmcblk0 flush x1", "thread mmcblk0 discard 64 KiB x1"];
    assert_eq!(titles(&record.flushes_and_discards), others);
    assert_eq!(record.requests[3].inodes[0].inode, 12);
}

#[test]
fn many_sizes_become_ranges() {
    let mut made = Made::default();
    for size in 1..=12_u64 {
        made.request(request(OpKind::Write, size * 4096, size * 1_000, STEPS_US));
    }
    let titles: Vec<String> = made.record().requests.iter().map(|group| group.title()).collect();
    assert_eq!(
        titles,
        [
            "mmcblk0 write 4 KiB",
            "mmcblk0 write 8 KiB to 12 KiB",
            "mmcblk0 write 16 KiB to 28 KiB",
            "mmcblk0 write 32 KiB to 48 KiB",
        ]
    );
}

#[test]
fn priority_classes_come_real_time_first_and_only_if_events_carry_them() {
    let record = rich().record();
    let classes: Vec<(&str, &str, u64)> =
        record.classes.iter().map(|class| (class.class, class.of, class.times.count)).collect();
    assert_eq!(classes, [("rt", "ios", 1), ("be", "requests", 3)]);
    let mut made = Made::default();
    made.usual_reads(2);
    assert!(made.record().classes.is_empty());
}

#[test]
fn only_the_asked_for_threads_and_devices_are_shown_and_the_rest_is_counted() {
    let made = rich();
    let of_pid = |pid| {
        let asked_for = Some(AskedFor::of_number(pid));
        record(&made.0, &Question { asked_for, ..question() })
    };
    let reader = of_pid(7);
    assert_eq!((reader.scope.ios_hidden, reader.scope.requests_hidden), (0, 4));
    assert_eq!((reader.ios.len(), reader.requests.len()), (3, 0));
    assert_eq!(reader.flushes_and_discards.len(), 1, "its own flush");
    let nobody = of_pid(4711);
    assert_eq!((nobody.ios.len(), nobody.scope.ios_hidden), (0, 33));
    let device = Some(Stack::unknown(Dev { major: 8, minor: 0 }));
    let other = record(&made.0, &Question { device, ..question() });
    assert_eq!((other.ios.len(), other.requests.len()), (0, 0));
}

#[test]
fn a_device_has_what_came_through_it_and_what_can_only_be_its_own() {
    let dev = |minor| Dev { major: 8, minor };
    let (disk, ours, others) = (dev(0), dev(1), dev(2));
    let came = |through: &[Dev], kind| {
        let data = request(kind, 4096, 0, STEPS_US);
        Request { dev: disk, through: through.to_vec(), ..data }
    };
    let below = BTreeSet::from([disk]);
    let partition = Stack { dev: ours, below: below.clone(), untold: Untold::Flushes };
    assert!(partition.has(&came(&[ours], OpKind::Read)));
    assert!(!partition.has(&came(&[others], OpKind::Read)));
    assert!(!partition.has(&came(&[], OpKind::Read)), "the whole disk's");
    assert!(partition.has(&came(&[], OpKind::Flush)), "no event names the devices above it");
    assert!(!partition.has(&came(&[others], OpKind::Flush)));

    let raid = Dev { major: 9, minor: 0 };
    let stack = Stack { dev: raid, below: BTreeSet::from([disk, ours]), untold: Untold::Anything };
    assert!(stack.has(&came(&[raid, ours], OpKind::Write)));
    assert!(stack.has(&came(&[ours], OpKind::Write)), "by a thread of the RAID's");
    assert!(!stack.has(&came(&[others], OpKind::Write)), "of another partition");
    let mapped = Stack { untold: Untold::Nothing, ..stack };
    assert!(mapped.has(&came(&[raid, ours], OpKind::Write)));
    assert!(!mapped.has(&came(&[ours], OpKind::Write)), "events tell of all that comes through");
    assert!(Stack::unknown(raid).has(&came(&[raid], OpKind::Write)));
    assert!(
        !Stack::unknown(raid).has(&came(&[ours], OpKind::Write)),
        "it is not known what is below"
    );
}

#[test]
fn the_worst_of_one_class_are_no_others() {
    let mut made = Made::default();
    for (class, queued_us) in [(Class::Rt, 100), (Class::Idle, 1_000)] {
        let data = request(OpKind::Read, 4096, queued_us, STEPS_US);
        made.io(Call::Pread64, 4096, (1, 1), vec![Request { priority: priority(class), ..data }]);
    }
    let worst = |worst_class| record(&made.0, &Question { worst_class, ..question() }).worst_ios;
    assert_eq!(worst(None).len(), 2);
    let of_rt: Vec<_> = worst(Some(Class::Rt)).iter().map(|worst| worst.class).collect();
    assert_eq!(of_rt, [Some("rt")]);
}

#[test]
fn the_most_at_once_is_counted() {
    let mut made = Made::default();
    for queued_us in [100, 110, 500] {
        let request = request(OpKind::Read, 4096, queued_us, STEPS_US);
        made.io(Call::Pread64, 4096, (1, 1), vec![request]);
    }
    assert_eq!(made.record().ios[0].at_once_max, 2);
}

#[test]
fn what_is_lost_or_unmatched_flaws_the_record() {
    let mut made = Made::default();
    made.usual_reads(2);
    assert!(!made.record().is_flawed());
    made.0.account.at_the_edges = 3;
    assert!(!made.record().is_flawed(), "a trace has edges");
    let problems = Problems { count: 1, first: vec!["trace:7: no time".into()] };
    assert!(record(&made.0, &Question { problems, ..question() }).is_flawed());
    made.0.account.events_lost = 1;
    assert!(made.record().is_flawed());
    assert!(rich().record().is_flawed());
}

#[test]
fn the_record_is_as_its_schema_says() {
    for made in [Made::default(), rich()] {
        let record = valid(&made.record());
        assert_eq!(record["account"]["matched"], made.0.requests.len());
    }
}

const MOMENTS: u64 = 64;

fn some_intervals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0..MOMENTS, 0..MOMENTS), 0..8)
}

/// One bit per moment.
fn bits(intervals: &[(u64, u64)]) -> u64 {
    let moments = intervals.iter().flat_map(|(begin, end)| *begin..*end);
    moments.fold(0, |bits, moment| bits | 1 << moment)
}

proptest! {
    #[test]
    fn intervals_are_sets_of_moments(left in some_intervals(), right in some_intervals()) {
        let (a, b) = (Intervals::new(left.clone()), Intervals::new(right.clone()));
        let (a_bits, b_bits) = (bits(&left), bits(&right));
        for (found, expected) in [
            (a.union(&b), a_bits | b_bits),
            (a.overlap(&b), a_bits & b_bits),
            (a.minus(&b), a_bits & !b_bits),
        ] {
            prop_assert_eq!(bits(&found.to_vec()), expected);
            prop_assert_eq!(found.total_ns(), u64::from(expected.count_ones()));
            prop_assert_eq!(found.is_empty(), expected == 0);
            // Made again of itself it is the same: sorted, no two touch.
            prop_assert_eq!(Intervals::new(found.iter()), found);
        }
    }
}

#[test]
fn steps_have_the_names_of_btt_too() {
    let times = Distribution::of(vec![1]).unwrap();
    let btt = |step: &str| StepTimes { step: step.into(), times: times.clone() }.btt();
    for (step, expected) in [
        ("queue->tag", Some("Q2G")),
        ("tag->insert", Some("G2I")),
        ("insert->issue", Some("I2D")),
        ("issue->completion", Some("D2C")),
        ("tag->issue", Some("G2D")),
        ("hardware", None),
        ("call->queue", None),
        ("issue->hardware", None),
    ] {
        assert_eq!(btt(step).as_deref(), expected, "{step}");
    }
}
