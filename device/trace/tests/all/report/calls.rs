// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls without a request of their own, and what they waited for.

use steadyio_trace::event::{Call, EventKind};
use steadyio_trace::report::record::{Question, Record};
use steadyio_trace::source::capture::threads::AskedFor;

use crate::events::{DISK, Script, extent};

/// Operation, what was waited for, and the times of all.
fn groups(script: &Script, question: Question) -> Vec<(&'static str, &'static str, u64)> {
    let record = Record::new(&script.follow(), question);
    let of = record.calls_without_request.iter();
    of.map(|group| (group.op, group.waited_for, group.sum_ns)).collect()
}

fn all(script: &Script) -> Vec<(&'static str, &'static str, u64)> {
    groups(script, Question::default())
}

#[test]
fn a_sync_whose_data_was_the_journals_waited_for_the_commit() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Fsync);
    script.named(50, "jbd2/sda1-8").at(10);
    script.what(EventKind::JournalCommitStart { dev: DISK, transaction: 3 });
    script.at(60).what(EventKind::JournalCommitEnd { dev: DISK, transaction: 3 });
    script.by(1).at(70).exit(Call::Fsync, 0);
    assert_eq!(all(&script), [("fsync", "journal", 70)]);
}

#[test]
fn a_write_that_was_paused_waited_for_dirty_throttling() {
    let mut script = Script::new();
    script.by(1).at(5).enter(Call::Write).at(7).what(EventKind::DirtyPause { pause_ns: 90 });
    script.at(100).exit(Call::Write, 4096);
    assert_eq!(all(&script), [("write", "dirty_throttling", 95)]);
}

#[test]
fn a_read_of_what_an_earlier_one_read_ahead_waited_for_that() {
    let mut script = Script::new();
    let ahead = extent("RA", 0, 8);
    script.by(1).at(0).enter(Call::Read);
    script.block('Q', ahead).block('G', ahead).block('D', ahead).at(5).exit(Call::Read, 4096);
    script.at(6).enter(Call::Read);
    script.by(0).at(30).block('C', ahead);
    script.by(1).at(34).exit(Call::Read, 4096);
    assert_eq!(all(&script), [("read", "readahead", 28), ("read", "unknown", 5)]);
}

#[test]
fn one_without_a_known_reason_is_shown_too_and_those_of_others_are_not() {
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Ftruncate).by(2).at(1).enter(Call::Read);
    script.at(2).exit(Call::Read, 1).by(1).at(40).exit(Call::Ftruncate, 0);
    assert_eq!(all(&script), [("ftruncate", "unknown", 40), ("read", "unknown", 1)]);
    let asked_for = Some(AskedFor::of_number(1));
    let own = groups(&script, Question { asked_for, ..Question::default() });
    assert_eq!(own, [("ftruncate", "unknown", 40)]);
}
