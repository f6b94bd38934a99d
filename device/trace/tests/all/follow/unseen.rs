// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces without the events of allocations, merges and splits: a bio is never taken for a later one.

use steadyio_trace::event::{Call, Extent};
use steadyio_trace::io::{Mark, Trace};

use crate::events::{Script, counted, extent};

fn queued(trace: &Trace) -> Vec<Option<u64>> {
    trace.requests.iter().map(|request| request.marks.get(Mark::Queued)).collect()
}

#[test]
fn parts_of_a_split_bio_are_its_own_in_any_order() {
    let mut script = Script::new();
    let (whole, front, rest) = (extent("R", 64, 16), extent("R", 64, 8), extent("R", 72, 8));
    for ns in [10, 1_000] {
        script.at(ns).by(1).block('Q', whole).at(ns + 1).block('D', rest).block('D', front);
        script.at(ns + 5).by(0).block('C', rest).block('C', front);
    }
    let trace = script.follow();
    assert_eq!(queued(&trace), [10, 10, 1_000, 1_000].map(Some));
    assert!(trace.requests.iter().all(|request| request.cut_from_bio));
}

#[test]
fn a_bio_that_was_merged_waits_for_nothing() {
    let mut script = Script::new();
    let (front, rest, both) = (extent("W", 64, 8), extent("W", 72, 8), extent("W", 64, 16));
    script.at(10).by(1).block('Q', front).at(11).block('Q', rest).at(12).block('D', both);
    script.at(20).by(0).block('C', both);
    script.at(1_000).by(2).block('Q', both).at(1_001).block('D', rest).block('D', front);
    script.at(1_010).by(0).block('C', rest).block('C', front);
    assert_eq!(queued(&script.follow()), [10, 1_000, 1_000].map(Some));
}

#[test]
fn a_rest_whose_issue_is_missing_makes_the_next_bio_there_unknown() {
    let mut script = Script::new();
    let (front, rest) = (extent("R", 64, 8), extent("R", 72, 8));
    script.at(10).by(1).block('Q', extent("R", 64, 16)).block('D', front).block('C', front);
    for ns in [1_000, 2_000] {
        script.at(ns).by(1).block('Q', rest).block('D', rest).block('C', rest);
    }
    assert_eq!(queued(&script.follow()), [Some(10), None, Some(2_000)]);
}

#[test]
fn an_issue_from_before_the_trace_takes_no_bio_that_gets_its_own_request() {
    let mut script = Script::new();
    let place = extent("R", 64, 8);
    script.at(10).by(1).block('Q', place).at(11).by(2).block('D', place).at(12).block('C', place);
    script.at(20).by(1).block('G', place).block('D', place).at(30).block('C', place);
    let trace = script.follow();
    assert_eq!(queued(&trace), [None]);
    assert_eq!((trace.account.matched, trace.account.at_the_edges), (1, 1));
}

/// A write of thread 1 that queues these bios, of which the first gets a request. `whole` is what is issued.
fn write_that_grows(bios: &[Extent], whole: Extent) -> Script {
    let mut script = Script::new();
    script.at(10).by(1).enter(Call::Pwrite64).block('Q', bios[0]).block('G', bios[0]);
    bios[1..].iter().for_each(|bio| _ = script.at(11).block('Q', *bio));
    script.at(12).block('D', whole).by(0).at(20).block('C', whole);
    script.by(1).at(30).exit(Call::Pwrite64, 8192);
    // Later, one at the place of the first.
    script.at(1_000).block('Q', bios[0]).block('G', bios[0]).block('D', bios[0]);
    script.by(0).at(1_010).block('C', bios[0]);
    script
}

#[test]
fn merges_without_events_are_found_by_the_bios_that_a_request_has_exactly_the_size_of() {
    let (low, high, both) = (extent("W", 64, 8), extent("W", 72, 8), extent("W", 64, 16));
    for bios in [[low, high], [high, low]] {
        let trace = write_that_grows(&bios, both).follow();
        assert_eq!((trace.account.matched, counted(&trace)), (2, 2), "{:#?}", trace.account);
        let request = &trace.requests[0];
        assert_eq!((request.sector, request.bytes, request.pid), (64, 8192, 1));
        assert_eq!(request.merged_queued_ns, [11]);
        assert_eq!((trace.ios.len(), &trace.ios[0].requests[..]), (1, &[0][..]));
    }
}

#[test]
fn a_request_that_grew_by_what_was_not_seen_leaves_its_place() {
    let (low, whole) = (extent("W", 64, 8), extent("W", 64, 24));
    let trace = write_that_grows(&[low, extent("W", 72, 8)], whole).follow();
    let found = (trace.account.matched, trace.account.at_the_edges, trace.account.unmatched_count);
    assert_eq!((found, trace.account.ios_incomplete), ((1, 1, 0), 1), "{:#?}", trace.account);
}

#[test]
fn a_request_that_grew_over_inserted_ones_is_no_second_one_there() {
    let (low, high, both) = (extent("W", 64, 8), extent("W", 72, 8), extent("W", 64, 16));
    for inserted in [&[low][..], &[low, high][..]] {
        let mut script = Script::new();
        script.at(10).by(1).block('Q', low).block('Q', high);
        inserted.iter().for_each(|of| _ = script.block('G', *of).block('I', *of));
        script.at(12).block('I', both).block('D', both).by(0).at(20).block('C', both);
        let trace = script.follow();
        assert_eq!((trace.account.matched, counted(&trace)), (1, 1), "{:#?}", trace.account);
        assert_eq!((trace.requests[0].sector, trace.requests[0].bytes), (64, 8192));
    }
}

#[test]
fn where_merges_have_events_no_request_grows_without_one() {
    let (low, high, both) = (extent("W", 64, 8), extent("W", 72, 8), extent("W", 64, 16));
    let mut script = write_that_grows(&[low, high], both);
    let (first, next) = (extent("W", 800, 8), extent("W", 808, 8));
    script.at(2_000).by(1).block('Q', first).block('G', first).block('Q', next).block('M', next);
    let trace = script.follow();
    assert_eq!((trace.account.matched, trace.ios.len()), (1, 0), "{:#?}", trace.account);
    assert_eq!((trace.account.at_the_edges, counted(&trace)), (2, 3));
}
