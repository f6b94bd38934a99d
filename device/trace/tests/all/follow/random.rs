// SPDX-License-Identifier: MIT OR Apache-2.0
//! In a random trace, the follower finds everything that really happened and nothing else.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use steadyio_trace::event::{Call, Comm, Event, EventKind};
use steadyio_trace::io::{Io, Mark, Piece, Request, Spans, Trace};
use strum::VariantArray;

use super::simulated::{CallTruth, Places, Ring, Shape, Sim, Truth, run, run_with};
use crate::cases::cases;
use crate::events::{counted, follow, op};

fn shapes(places: Places) -> impl Strategy<Value = Shape> {
    (any::<u64>(), 10u32..1_500).prop_map(move |(seed, steps)| Shape { seed, steps, places })
}

/// Which request of the truth each found one is: a time names an event.
fn identify(sim: &Sim, trace: &Trace) -> Vec<usize> {
    let issued = |marks: &steadyio_trace::io::Marks| marks.get(Mark::Issued);
    let by_issue: HashMap<u64, usize> = (0..sim.requests.len())
        .filter_map(|nth| Some((issued(&sim.requests[nth].marks)?, nth)))
        .collect();
    trace.requests.iter().map(|request| by_issue[&issued(&request.marks).unwrap()]).collect()
}

/// What no loss can change in a request that is reported.
fn assert_request(found: &Request, truth: &Truth) {
    assert_eq!((found.sector, found.bytes), (truth.sector, truth.bytes), "{found:#?} {truth:#?}");
    assert_eq!(found.op, op(truth.letters));
    assert_eq!((found.requeues, found.error), (truth.requeues, truth.error));
    let pieces: &[_] = if truth.pieces.len() > 1 { &truth.pieces } else { &[] };
    assert_eq!(found.pieces.len(), pieces.len());
    for (found, truth) in found.pieces.iter().zip(pieces) {
        let start_ns = found.hardware_start_ns.and(truth.hardware_start_ns);
        let done_ns = found.hardware_done_ns.and(truth.hardware_done_ns);
        let known = Piece { hardware_start_ns: start_ns, hardware_done_ns: done_ns, ..*truth };
        assert_eq!(*found, known, "{truth:#?}");
    }
    let hardware = truth.pieces.iter();
    let start_ns = hardware.clone().find_map(|piece| piece.hardware_start_ns);
    let done_ns = hardware.last().and_then(|piece| piece.hardware_done_ns);
    for mark in Mark::VARIANTS.iter().copied() {
        let expected = match mark {
            Mark::HardwareStart => start_ns,
            Mark::HardwareDone => done_ns,
            _ => truth.marks.get(mark),
        };
        let known = found.marks.get(mark);
        // Of a flush, the first bio that is known.
        let flush = truth.letters == "FF" && matches!(mark, Mark::Queued | Mark::GotRequest);
        assert!(flush || known.is_none() || known == expected, "{mark:?} {found:#?} {truth:#?}");
    }
    let queued: BTreeSet<u64> = truth.bios.iter().map(|bio| bio.0).collect();
    assert!(found.merged_queued_ns.iter().all(|ns| queued.contains(ns)));
    let first = found.marks.get(Mark::Queued);
    assert!(first.is_none_or(|ns| queued.contains(&ns)), "{found:#?} {truth:#?}");
}

fn spans_by_ns(sim: &Sim, call: &CallTruth) -> Spans {
    let mut spans = Spans::default();
    let present = |from_ns: &u64, truth: &Truth, ns: u64| {
        (*from_ns..truth.marks.get(Mark::Completed).unwrap()).contains(&ns)
    };
    let with_device = |truth: &Truth, ns: u64| {
        let flush = truth.letters == "FF" && {
            let marks = &truth.marks;
            (marks.get(Mark::Issued).unwrap()..marks.get(Mark::Completed).unwrap()).contains(&ns)
        };
        flush
            || truth.pieces.iter().any(|piece| {
                let from_ns = piece.hardware_start_ns.unwrap_or(piece.issued_ns);
                (from_ns..piece.hardware_done_ns.unwrap_or(piece.ended_ns)).contains(&ns)
            })
    };
    for ns in call.entered_ns..call.exited_ns.unwrap() {
        let all = || call.requests.iter().map(|(nth, from_ns)| (&sim.requests[*nth], from_ns));
        if all().any(|(truth, _)| with_device(truth, ns)) {
            spans.device_ns += 1;
        } else if all().any(|(truth, from_ns)| present(from_ns, truth, ns)) {
            spans.block_ns += 1;
        } else if all().any(|(_, from_ns)| *from_ns > ns) {
            spans.submission_ns += 1;
        } else {
            spans.post_ns += 1;
        }
    }
    spans
}

fn assert_io(sim: &Sim, identity: &[usize], found: &Io, truth: &CallTruth) {
    assert_eq!((found.call, found.pid), (truth.call, truth.pid));
    assert_eq!(Some(found.exited_ns), truth.exited_ns);
    let requests: BTreeSet<usize> = found.requests.iter().map(|nth| identity[*nth]).collect();
    let expected: BTreeSet<usize> = truth.requests.keys().copied().collect();
    assert_eq!(requests, expected, "{found:#?} {truth:#?}");
    assert_eq!(found.spans, spans_by_ns(sim, truth), "{found:#?} {truth:#?}");
}

fn assert_all(sim: &Sim, trace: &Trace) {
    let identity = identify(sim, trace);
    for (found, nth) in trace.requests.iter().zip(&identity) {
        assert_request(found, &sim.requests[*nth]);
    }
    let calls: BTreeMap<u64, &CallTruth> =
        sim.calls.iter().map(|call| (call.entered_ns, call)).collect();
    for io in &trace.ios {
        assert_eq!(io.spans.total_ns(), io.exited_ns - io.entered_ns);
        assert_io(sim, &identity, io, calls[&io.entered_ns]);
    }
}

/// Takes away runs of events of one CPU, each time with the notice that the kernel leaves.
fn drop_events(events: &[Event], runs: &[(usize, usize)]) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::new();
    let mut dropped: HashMap<u32, u64> = HashMap::new();
    let mut dropping: HashMap<u32, usize> = HashMap::new();
    let mut last_ns: HashMap<u32, u64> = HashMap::new();
    for (nth, event) in events.iter().enumerate() {
        if let Some((_, length)) = runs.iter().find(|(begin, _)| *begin == nth) {
            dropping.insert(event.cpu, *length);
        }
        let left = dropping.entry(event.cpu).or_default();
        if *left > 0 {
            *left -= 1;
            *dropped.entry(event.cpu).or_default() += 1;
            continue;
        }
        if let Some(count) = dropped.remove(&event.cpu) {
            let (time_ns, comm) = (event.time_ns, Comm::default());
            let since_ns = Some(last_ns.get(&event.cpu).copied().unwrap_or(0));
            let what = EventKind::Lost { count, since_ns };
            kept.push(Event { time_ns, cpu: event.cpu, pid: 0, comm, what });
        }
        kept.push(*event);
        last_ns.insert(event.cpu, event.time_ns);
    }
    let end_ns = events.last().map_or(0, |event| event.time_ns + 1);
    for (cpu, count) in dropped {
        let since_ns = Some(last_ns.get(&cpu).copied().unwrap_or(0));
        let what = EventKind::Lost { count, since_ns };
        kept.push(Event { time_ns: end_ns, cpu, pid: 0, comm: Comm::default(), what });
    }
    kept
}

/// Plain requests that began after a loss and share no sector with one that was open then, nor with one that
/// does. Flushes wait for each other, and so do requests with one before or behind.
fn untouched(sim: &Sim, lost_ns: RangeInclusive<u64>) -> Vec<usize> {
    let began_ns = |truth: &Truth| truth.bios.iter().map(|bio| bio.0).min();
    let mut order: Vec<usize> = (0..sim.requests.len()).collect();
    order.sort_by_key(|nth| began_ns(&sim.requests[*nth]));
    let mut touched: Vec<(u64, u64)> = Vec::new();
    let mut found = Vec::new();
    for nth in order {
        let truth = &sim.requests[nth];
        let (begin, end) = (truth.sector, truth.sector + (truth.bytes >> 9).max(1));
        let ended_ns = truth.marks.get(Mark::Completed);
        let is_after = began_ns(truth).is_some_and(|ns| ns > *lost_ns.end());
        let was_open = !is_after && ended_ns.is_none_or(|ns| ns >= *lost_ns.start());
        if was_open || touched.iter().any(|(from, to)| begin < *to && *from < end) {
            touched.push((begin, end));
        } else if is_after && ended_ns.is_some() && matches!(truth.letters, "R" | "W" | "RS" | "WS")
        {
            found.push(nth);
        }
    }
    found
}

/// When events are missing on a CPU: from its last one until the notice.
fn losses(events: &[Event]) -> Vec<RangeInclusive<u64>> {
    let mut last_ns: HashMap<u32, u64> = HashMap::new();
    let mut losses = Vec::new();
    for event in events {
        let before_ns = last_ns.insert(event.cpu, event.time_ns).unwrap_or(0);
        if matches!(event.what, EventKind::Lost { .. }) {
            losses.push(before_ns..=event.time_ns);
        }
    }
    losses
}

/// Each event is lost with a chance of one in a hundred.
#[test]
fn a_loss_of_one_event_in_a_hundred_costs_what_was_there_then() {
    let (found, expected) = (Cell::new(0), Cell::new(0));
    let inputs = (shapes(Places::Moving), prop::collection::vec(prop::bool::weighted(0.01), 9_000));
    let tried = TestRunner::new(cases(100)).run(&inputs, |(shape, lost)| {
        let sim = run_with(shape, Ring::Absent);
        let lost = (0..sim.events.len()).filter(|nth| lost[nth % lost.len()]);
        let left = drop_events(&sim.events, &lost.map(|nth| (nth, 1)).collect::<Vec<_>>());
        let trace = follow(&left);
        assert_all(&sim, &trace);
        let matched: BTreeSet<usize> = identify(&sim, &trace).into_iter().collect();
        let losses = losses(&left);
        for (nth, truth) in sim.requests.iter().enumerate() {
            let first_ns = truth.bios.iter().map(|bio| bio.0).min();
            let Some(life) = first_ns.zip(truth.marks.get(Mark::Completed)) else { continue };
            if losses.iter().all(|lost| *lost.end() < life.0 || life.1 < *lost.start()) {
                expected.set(expected.get() + 1);
                found.set(found.get() + u64::from(matched.contains(&nth)));
            }
        }
        Ok(())
    });
    tried.unwrap();
    assert!(100 * found.get() >= 95 * expected.get(), "{found:?} of {expected:?}");
}

proptest! {
    #![proptest_config(cases(200))]

    /// Without loss and without two requests at one place, everything is found.
    #[test]
    fn everything_that_happened_is_found(
        shape in shapes(Places::Apart),
        ring in prop_oneof![Just(Ring::Absent), Just(Ring::AllBegins)],
    ) {
        let sim = run_with(shape, ring);
        let trace = follow(&sim.events);
        assert_all(&sim, &trace);
        let issued = sim.requests.iter().filter(|truth| truth.marks.get(Mark::Issued).is_some());
        assert_eq!(trace.account.matched as usize, issued.count(), "{:#?}", trace.account);
        assert_eq!(counted(&trace), trace.account.matched);
        for (found, nth) in trace.requests.iter().zip(identify(&sim, &trace)) {
            let truth = &sim.requests[nth];
            for mark in [Mark::Queued, Mark::GotRequest, Mark::Inserted, Mark::Completed] {
                assert_eq!(found.marks.get(mark), truth.marks.get(mark), "{mark:?} {found:#?} {truth:#?}");
            }
            assert_eq!(found.merged_queued_ns.len() + 1, truth.bios.len(), "{found:#?} {truth:#?}");
            assert_eq!((found.cut_from_bio, truth.bios.iter().any(|bio| bio.1 == found.pid)), (truth.cut, true));
        }
        let asked = sim.calls.iter().filter(|call| !call.requests.is_empty());
        assert_eq!(trace.ios.len(), asked.count(), "{:#?}", trace.account);
        assert_eq!(trace.account.calls_without_request as usize + trace.ios.len(), sim.calls.len());
    }

    /// Requests at the same place at the same time: nothing is guessed, everything is counted.
    #[test]
    fn nothing_is_guessed(shape in shapes(Places::Shared)) {
        let sim = run(shape);
        let trace = follow(&sim.events);
        assert_all(&sim, &trace);
    }

    /// Workers of io_uring without `io_uring_file_get`: ambiguous operations are incomplete.
    #[test]
    fn operations_that_cannot_be_told_apart_are_counted(shape in shapes(Places::Apart)) {
        let sim = run_with(shape, Ring::SomeBegins);
        let trace = follow(&sim.events);
        assert_all(&sim, &trace);
        let account = &trace.account;
        let found = trace.ios.len() as u64 + account.ios_incomplete + account.calls_without_request;
        assert_eq!(found, sim.calls.len() as u64, "{account:#?}");
    }

    /// Workers that did something from before the trace.
    #[test]
    fn operations_at_the_edges_of_a_trace_are_true(
        shape in shapes(Places::Apart),
        ring in prop_oneof![Just(Ring::AllBegins), Just(Ring::SomeBegins)],
        begin in 0.0..1.0,
    ) {
        let sim = run_with(shape, ring);
        let part = &sim.events[(sim.events.len() as f64 * begin) as usize..];
        prop_assume!(part.iter().any(|event| matches!(event.what, EventKind::GetRequest(_))));
        let trace = follow(part);
        let identity = identify(&sim, &trace);
        let calls: BTreeMap<u64, &CallTruth> =
            sim.calls.iter().map(|call| (call.entered_ns, call)).collect();
        for io in trace.ios.iter().filter(|io| io.call == Call::IoUringEnter) {
            assert_io(&sim, &identity, io, calls[&io.entered_ns]);
        }
    }

    /// A trace that begins late and ends early.
    #[test]
    fn the_edges_of_a_trace_are_counted(shape in shapes(Places::Apart), cut in (0.0..1.0, 0.0..1.0)) {
        let sim = run(shape);
        let at = |part: f64| (sim.events.len() as f64 * part) as usize;
        let (begin, end) = (at(cut.0).min(at(cut.1)), at(cut.0).max(at(cut.1)));
        let part = &sim.events[begin..end];
        // Without a single one, requests are not expected to have a beginning.
        prop_assume!(part.iter().any(|event| matches!(event.what, EventKind::GetRequest(_))));
        let trace = follow(part);
        let missed = (trace.account.unmatched_count, trace.account.hit_by_loss);
        assert_eq!(missed, (0, 0), "{:#?}", trace.account);
        for (found, nth) in trace.requests.iter().zip(identify(&sim, &trace)) {
            if found.marks.get(Mark::Queued).is_some() {
                assert_request(found, &sim.requests[nth]);
            }
        }
    }

    /// Whatever is lost, what is reported is true.
    #[test]
    fn a_loss_makes_nothing_wrong(
        shape in shapes(Places::Apart),
        ring in prop_oneof![Just(Ring::Absent), Just(Ring::SomeBegins)],
        runs in prop::collection::vec((0usize..4_000, 1usize..40), 1..6),
    ) {
        let sim = run_with(shape, ring);
        let trace = follow(&drop_events(&sim.events, &runs));
        assert_all(&sim, &trace);
    }

    /// A loss costs what was open and what shares a place with that, and nothing else.
    #[test]
    fn a_loss_leaves_what_shares_no_place_with_it(
        shape in shapes(Places::Apart),
        begin in 0.0..1.0,
        length in 1usize..40,
    ) {
        let sim = run_with(shape, Ring::Absent);
        prop_assume!(!sim.events.is_empty());
        let begin = (sim.events.len() as f64 * begin) as usize;
        let left = drop_events(&sim.events, &[(begin, length)]);
        let lost = left.iter().filter(|event| matches!(event.what, EventKind::Lost { .. }));
        let ended_ns = lost.map(|event| event.time_ns).max().unwrap();
        let trace = follow(&left);
        let found: BTreeSet<usize> = identify(&sim, &trace).into_iter().collect();
        for nth in untouched(&sim, sim.events[begin].time_ns..=ended_ns) {
            assert!(found.contains(&nth), "{:#?} {:#?}", sim.requests[nth], trace.account);
        }
    }

    /// Losses that nobody reports can hide anything, but they break nothing.
    #[test]
    fn any_events_in_any_order_are_survived(shape in shapes(Places::Shared), step in 2usize..9) {
        let sim = run(shape);
        let some: Vec<Event> = sim.events.iter().step_by(step).copied().collect();
        let trace = follow(&some);
        assert_eq!(trace.account.events as usize, some.len());
        assert_eq!(trace.account.matched as usize, trace.requests.len());
        for io in &trace.ios {
            assert_eq!(io.spans.total_ns(), io.exited_ns - io.entered_ns);
        }
    }
}
