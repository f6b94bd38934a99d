// SPDX-License-Identifier: MIT OR Apache-2.0
//! Perfetto files of random traces: every rule of the format holds, and no time is lost or invented.

use std::collections::BTreeMap;

use proptest::prelude::*;
use steadyio_trace::event::{Call, Class, Comm, Dev, Op, OpKind, Priority};
use steadyio_trace::io::{Io, Mark, Marks, Origin, Piece, Request, Spans, Trace};
use steadyio_trace::perfetto::lanes;
use strum::VariantArray;

use super::read::{File, Slice};
use crate::cases::cases;

/// Few distinct values, so that many things happen at one moment.
fn step_ns() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..3u64, 2 => 0..400u64, 1 => 0..60_000_000_000u64]
}

fn any_op() -> impl Strategy<Value = Op> {
    const KINDS: [OpKind; 5] =
        [OpKind::Read, OpKind::Write, OpKind::Flush, OpKind::Discard, OpKind::Other];
    let flags = any::<[bool; 5]>();
    (prop::sample::select(&KINDS[..]), flags).prop_map(
        |(kind, [preflush, fua, sync, meta, ahead])| Op { kind, preflush, fua, sync, meta, ahead },
    )
}

/// Marks from `begin_ns`; issue and end are always known.
fn any_marks(begin_ns: u64) -> impl Strategy<Value = Marks> {
    let steps = prop::collection::vec((step_ns(), any::<bool>()), Mark::VARIANTS.len());
    steps.prop_map(move |steps| {
        let (mut marks, mut time_ns) = (Marks::default(), begin_ns);
        for (mark, (step_ns, known)) in Mark::VARIANTS.iter().zip(steps) {
            time_ns += step_ns;
            if known || matches!(mark, Mark::Issued | Mark::Completed) {
                marks.set(*mark, time_ns);
            }
        }
        marks
    })
}

/// Dispatches, between issue and completion.
fn pieces_between(marks: &Marks, shares: &[u64]) -> Vec<Piece> {
    let (begin_ns, end_ns) =
        (marks.get(Mark::Issued).unwrap(), marks.get(Mark::Completed).unwrap());
    let mut moments: Vec<u64> =
        shares.iter().map(|share| begin_ns + share % (end_ns - begin_ns + 1)).collect();
    moments.sort_unstable();
    moments.truncate(moments.len() & !3);
    // The first turn begins with the issue, and with the last one the request ends.
    if let [first, .., last] = &mut moments[..] {
        (*first, *last) = (begin_ns, end_ns);
    }
    let known = |time_ns: u64| (time_ns % 3 > 0).then_some(time_ns);
    let turns = moments.chunks_exact(4);
    turns
        .map(|turn| Piece {
            issued_ns: turn[0],
            ended_ns: turn[3],
            sector: 8,
            bytes: 4096,
            hardware_start_ns: known(turn[1]),
            hardware_done_ns: known(turn[2]),
        })
        .collect()
}

fn any_request() -> impl Strategy<Value = Request> {
    let marks = step_ns().prop_flat_map(|begin_ns| any_marks(1_000 + begin_ns));
    let shares = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(any::<u64>(), 8..17)];
    let levels = prop::option::of((0..4usize, 0..8u8));
    (marks, shares, any_op(), levels, 0..3u32, 0..4u64, any::<bool>()).prop_map(
        |(marks, shares, op, level, minor, blocks, failed)| Request {
            dev: Dev { major: 179, minor },
            op,
            sector: blocks * 64,
            bytes: blocks * 4096,
            priority: level.map(|(class, level)| Priority {
                class: [Class::None, Class::Rt, Class::Be, Class::Idle][class],
                level,
            }),
            pid: 100 + minor,
            comm: Comm::new(b"writer"),
            origin: [Origin::Thread, Origin::Journal, Origin::Writeback(Some(7))][minor as usize],
            pieces: pieces_between(&marks, &shares),
            marks,
            cut_from_bio: failed,
            requeues: blocks as u32,
            error: if failed { -5 } else { 0 },
            ..Request::default()
        },
    )
}

/// Requests, some of which are of I/Os of three threads, one or more each.
fn any_trace() -> impl Strategy<Value = Trace> {
    let requests = prop::collection::vec((any_request(), prop::option::of(0..6usize)), 0..40);
    let around = prop::collection::vec((step_ns(), step_ns(), 0..3u32), 6);
    (requests, around).prop_map(|(chosen, around)| {
        let mut by_io: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, (_, io)) in chosen.iter().enumerate() {
            io.map(|io| by_io.entry(io).or_default().push(index));
        }
        let mut requests: Vec<Request> = chosen.into_iter().map(|(request, _)| request).collect();
        let ios = by_io.into_values().enumerate().map(|(number, mut own)| {
            let first = |index: &usize| requests[*index].begin_ns();
            own.sort_by_key(first);
            let (before_ns, after_ns, thread) = around[number];
            let entered_ns = first(&own[0]).saturating_sub(before_ns);
            let end = |index: &usize| requests[*index].marks.get(Mark::Completed).unwrap();
            let exited_ns = own.iter().map(end).max().unwrap() + after_ns;
            for index in &own {
                requests[*index].origin = Origin::Io(number);
            }
            let call = [Call::Pread64, Call::Fsync, Call::IoUringEnter][number % 3];
            Io {
                exited_ns,
                bytes: own.len() as u64,
                requests: own,
                spans: Spans { device_ns: exited_ns - entered_ns, ..Spans::default() },
                ..Io::begin(call, (200 + thread, Comm::new(b"reader")), entered_ns)
            }
        });
        let ios = ios.collect();
        Trace { requests, ios, ..Trace::default() }
    })
}

fn total_ns(slices: &[&Slice]) -> u64 {
    slices.iter().map(|slice| slice.end_ns.unwrap() - slice.begin_ns).sum()
}

/// How many go on at once at most; what ends at a moment makes room for what begins.
fn at_once(intervals: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut changes: Vec<(u64, i64)> =
        intervals.flat_map(|(begin, end)| [(begin, 1), (end, -1)]).collect();
    changes.sort_unstable();
    let mut count = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        count += change;
        count
    });
    counts.max().unwrap_or(0) as usize
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn slices_of_a_lane_never_overlap(trace in any_trace()) {
        let file = File::of(&trace);
        for slice in &file.slices {
            let is_wait = ["waiting", "plugged", "in the"].iter().any(|w| slice.name.starts_with(w));
            prop_assert_eq!(slice.depth, usize::from(is_wait));
            prop_assert!(file.tracks[&slice.track].counts.is_empty());
        }
    }

    #[test]
    fn no_time_is_lost_or_invented(trace in any_trace()) {
        let file = File::of(&trace);
        let device: u64 = trace.requests.iter().map(|request| request.with_device().total_ns()).sum();
        prop_assert_eq!(total_ns(&file.on("device")), device);
        let threads = file.slices.iter().filter(|slice| slice.arguments.contains_key("io"));
        let ios: u64 = trace.ios.iter().map(|io| io.spans.total_ns()).sum();
        prop_assert_eq!(total_ns(&threads.collect::<Vec<_>>()), ios);
        for (index, request) in trace.requests.iter().enumerate() {
            let of_it = |slice: &&Slice| {
                slice.arguments.get("request").is_some_and(|text| *text == index.to_string())
            };
            let mut own: Vec<&Slice> = file.slices.iter().filter(of_it).collect();
            own.sort_by_key(|slice| (slice.begin_ns, slice.end_ns));
            for pair in own.windows(2) {
                prop_assert!(pair[0].end_ns.unwrap() <= pair[1].begin_ns, "{:?}", own);
            }
            if request.marks.get(Mark::Queued).is_some() {
                let end_ns = own.last().unwrap().end_ns.unwrap();
                prop_assert_eq!(total_ns(&own), end_ns - own[0].begin_ns, "a gap: {:?}", own);
            }
        }
    }

    #[test]
    fn each_flow_has_two_ends(trace in any_trace()) {
        let file = File::of(&trace);
        let mut ends: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for slice in &file.slices {
            slice.flows.iter().for_each(|flow| ends.entry(*flow).or_default().0 += 1);
            slice.last_of.iter().for_each(|flow| ends.entry(*flow).or_default().1 += 1);
        }
        for (flow, (on, last)) in &ends {
            prop_assert!(*on >= 1 && *last == 1, "flow {}: {} and {}", flow, on, last);
        }
        for (index, request) in trace.requests.iter().enumerate() {
            let flows = ends.contains_key(&(index as u64 + 1));
            prop_assert!(flows || !matches!(request.origin, Origin::Io(_)));
        }
    }

    #[test]
    fn counters_return_to_zero(trace in any_trace()) {
        let file = File::of(&trace);
        for track in file.tracks.values().filter(|track| !track.counts.is_empty()) {
            prop_assert!(track.counts.iter().all(|(_, count)| *count >= 0));
            prop_assert_eq!(track.counts.last().unwrap().1, 0);
        }
    }

    #[test]
    fn lanes_are_as_few_as_can_be(
        intervals in prop::collection::vec((step_ns(), 1..300u64), 0..60)
    ) {
        let mut intervals: Vec<(u64, u64)> =
            intervals.into_iter().map(|(begin, long)| (begin, begin + long)).collect();
        intervals.sort_unstable();
        let lanes = lanes::assign(intervals.iter().copied());
        let mut until = BTreeMap::new();
        for ((begin, end), lane) in intervals.iter().zip(&lanes) {
            prop_assert!(until.insert(*lane, *end).unwrap_or(0) <= *begin);
        }
        prop_assert_eq!(until.len(), at_once(intervals.into_iter()));
    }
}
