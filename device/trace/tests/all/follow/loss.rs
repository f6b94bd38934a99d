// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests are unknown after a loss of events, and from which event on they are known again.

use steadyio_trace::event::{Comm, Command, Dev, Driver, EventKind, Extent, UNKNOWN_CPU};
use steadyio_trace::io::Trace;
use steadyio_trace::sched::{SchedTask, Switch};

use crate::events::{DISK, Script, extent};

/// A request of thread 1 up to its issue.
fn issue(script: &mut Script, at_ns: u64, place: Extent) {
    script.at(at_ns).on(0).by(1).block('Q', place).block('G', place).block('D', place);
}

fn whole(script: &mut Script, at_ns: u64, place: Extent) {
    issue(script, at_ns, place);
    script.at(at_ns + 5).by(0).block('C', place);
}

fn lose(script: &mut Script, at_ns: u64) {
    script.at(at_ns).on(1).by(0).what(EventKind::Lost { count: 3, since_ns: None });
}

fn start(script: &mut Script, at_ns: u64, key: u64, place: Extent) {
    let (sector, bytes) = (Some(place.sector), Some(place.sectors * 512));
    let command = Command { driver: Driver::Mmc, key, sector, bytes, opcode: Some(18) };
    script.at(at_ns).on(0).by(0).what(EventKind::HardwareStart(command));
}

/// Matched, and hit by loss.
fn found(trace: &Trace) -> (u64, u64) {
    assert_eq!(trace.account.unmatched_count, 0, "{:#?}", trace.account);
    (trace.account.matched, trace.account.hit_by_loss)
}

#[test]
fn a_request_whose_end_may_be_lost_leaves_its_place_ambiguous() {
    let mut script = Script::new();
    let place = extent("R", 64, 8);
    issue(&mut script, 0, place);
    lose(&mut script, 10);
    whole(&mut script, 20, place);
    whole(&mut script, 30, place);
    whole(&mut script, 40, extent("R", 256, 8));
    assert_eq!(found(&script.follow()), (1, 3));
}

#[test]
fn an_mmc_command_for_another_place_settles_the_request_that_had_it() {
    let mut script = Script::new();
    let (place, other) = (extent("R", 64, 8), extent("R", 256, 8));
    issue(&mut script, 0, place);
    start(&mut script, 1, 0xabc, place);
    lose(&mut script, 10);
    issue(&mut script, 20, other);
    start(&mut script, 21, 0xabc, other);
    script.at(22).block('C', other);
    whole(&mut script, 30, place);
    assert_eq!(found(&script.follow()), (2, 1));
}

#[test]
fn an_mmc_command_for_the_same_place_may_be_the_same_request_again() {
    let mut script = Script::new();
    let place = extent("R", 64, 8);
    issue(&mut script, 0, place);
    start(&mut script, 1, 0xabc, place);
    lose(&mut script, 10);
    issue(&mut script, 20, place);
    start(&mut script, 21, 0xabc, place);
    script.at(22).block('C', place);
    whole(&mut script, 30, place);
    assert_eq!(found(&script.follow()), (0, 3));
}

#[test]
fn of_two_requests_that_were_mixed_up_a_command_proves_nothing() {
    let mut script = Script::new();
    let (place, other) = (extent("R", 64, 8), extent("R", 256, 8));
    issue(&mut script, 0, place);
    start(&mut script, 1, 0xabc, place);
    lose(&mut script, 10);
    // One of the two ends: perhaps the first, whose command is free then, and the second goes on.
    issue(&mut script, 20, place);
    script.at(22).block('C', place);
    issue(&mut script, 30, other);
    start(&mut script, 31, 0xabc, other);
    script.at(32).block('C', other);
    whole(&mut script, 40, place);
    assert_eq!(found(&script.follow()), (1, 3));
}

/// A flush of which the end may be lost, and two more.
fn three_flushes(dev: Dev) -> Trace {
    let mut script = Script::new();
    let end = Extent { dev, ..extent("FF", u64::MAX, 0) };
    let begin = Extent { sector: 0, ..end };
    script.at(0).on(0).by(1).block('D', begin);
    lose(&mut script, 10);
    for at_ns in [20, 30] {
        script.at(at_ns).on(0).by(1).block('D', begin).at(at_ns + 5).by(0).block('C', end);
    }
    script.follow()
}

#[test]
fn a_flush_of_one_queue_settles_the_one_before_it() {
    // The second may be the first, requeued and issued again unseen.
    assert_eq!(found(&three_flushes(DISK)), (1, 2));
    assert_eq!(found(&three_flushes(Dev { major: 7, minor: 0 })), (1, 2));
}

#[test]
fn a_flush_of_another_queue_says_nothing_about_the_one_before_it() {
    assert_eq!(found(&three_flushes(Dev { major: 259, minor: 0 })), (0, 3));
}

#[test]
fn a_flush_whose_end_may_be_lost_leaves_the_rest_of_its_device_known() {
    let mut script = Script::new();
    let begin = extent("FF", 0, 0);
    script.at(0).on(0).by(1).block('D', begin);
    lose(&mut script, 10);
    for (nth, sector) in [444_958_032, 1_000, 0].into_iter().enumerate() {
        whole(&mut script, 20 + 10 * nth as u64, extent("RS", sector, 8));
    }
    assert_eq!(found(&script.follow()), (3, 1));
}

#[test]
fn passthrough_commands_that_are_mixed_up_leave_the_rest_known() {
    let mut script = Script::new();
    let (begin, end) = (extent("N", 0, 0), extent("N", u64::MAX, 0));
    script.at(0).on(0).by(5).block('D', begin).on(1).by(6).block('D', begin);
    script.at(10).on(0).by(0).block('C', end);
    whole(&mut script, 20, extent("R", 1_000, 8));
    script.at(30).on(0).by(0).block('C', end);
    whole(&mut script, 40, extent("R", 2_000, 8));
    assert_eq!(script.follow().account.matched, 2);
}

#[test]
fn a_loss_at_an_unknown_place_leaves_nothing() {
    let mut script = Script::new();
    let idle = SchedTask { pid: 0, comm: Comm::default(), prio: 120 };
    let switch = Switch { prev: idle, runnable: true, next: SchedTask { pid: 1, ..idle } };
    script.by(0).what(EventKind::Switch(switch));
    whole(&mut script, 0, extent("R", 64, 8));
    whole(&mut script, 20, extent("R", 128, 8));
    script.at(30).on(UNKNOWN_CPU).by(0).what(EventKind::Lost { count: 1, since_ns: None });
    let trace = script.follow();
    assert_eq!((found(&trace), trace.sched.events.len()), ((0, 2), 0));
}

#[test]
fn an_end_whose_request_may_be_lost_leaves_what_ended_before() {
    let mut script = Script::new();
    let place = extent("R", 64, 8);
    whole(&mut script, 10, place);
    script.at(100).on(1).by(0).what(EventKind::Lost { count: 3, since_ns: Some(50) });
    script.at(200).on(0).by(0).block('C', place);
    assert_eq!(found(&script.follow()), (1, 1));
}

#[test]
fn a_loss_withdraws_what_an_earlier_one_left_too() {
    let mut script = Script::new();
    whole(&mut script, 10, extent("R", 64, 8));
    script.at(20).on(1).by(1).block('Q', extent("R", 256, 8));
    whole(&mut script, 30, extent("R", 128, 8));
    let lost = |since_ns| EventKind::Lost { count: 1, since_ns: Some(since_ns) };
    script.at(50).on(2).by(0).what(lost(40));
    whole(&mut script, 60, extent("R", 192, 8));
    script.at(70).on(1).by(0).what(lost(20));
    assert_eq!(found(&script.follow()), (1, 2));
}
