// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces without the events of allocations, merges and splits: a bio is never taken for a later one.

use steadyio_trace::io::{Mark, Trace};

use crate::events::{Script, extent};

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
