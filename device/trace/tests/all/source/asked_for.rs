// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads belong to the program that was asked for, as numbers come and go.

use steadyio_trace::event::EventKind;
use steadyio_trace::source::capture::threads::AskedFor;

use crate::events::Script;

const TRACER: u32 = 5;

/// Thread 7 is requested; each of `forks` has the time, the parent and the new thread.
fn after(mut asked_for: AskedFor, forks: &[(u64, u32, u32)]) -> AskedFor {
    let mut script = Script::new();
    for (time_ns, by, child) in forks {
        script.at(*time_ns).by(*by).what(EventKind::Fork { child: *child, same_process: false });
    }
    script.events.iter().for_each(|event| asked_for.take(event));
    asked_for
}

fn program() -> AskedFor {
    AskedFor::of_threads(&[7], &[TRACER])
}

#[test]
fn what_a_thread_starts_and_what_that_starts_belong_to_it() {
    let asked_for = after(program(), &[(10, 7, 8), (20, 8, 9), (30, 1, 2)]);
    assert_eq!(
        [7, 8, 9, 2].map(|thread| asked_for.includes(thread, 40)),
        [true, true, true, false]
    );
    assert!(!asked_for.includes(9, 19), "it was not there yet");
}

#[test]
fn a_number_that_others_use_again_is_no_longer_the_programs() {
    let asked_for = after(program(), &[(10, 7, 8), (20, 1, 8), (30, 8, 9), (40, 7, 8)]);
    let at = [15, 25, 45].map(|time_ns| asked_for.includes(8, time_ns));
    assert_eq!(at, [true, false, true]);
    assert!(!asked_for.includes(9, 50), "the other one started it");
}

#[test]
fn a_number_that_the_program_uses_again_is_the_programs() {
    let asked_for = after(program(), &[(10, 7, 8), (20, 7, 8)]);
    assert!([15, 25].iter().all(|time_ns| asked_for.includes(8, *time_ns)));
}

#[test]
fn a_program_that_the_tracer_starts_begins_there() {
    let asked_for = after(program(), &[(10, TRACER, 7), (20, 1, 7)]);
    assert_eq!([9, 15, 25].map(|time_ns| asked_for.includes(7, time_ns)), [false, true, false]);
}

#[test]
fn of_a_file_all_that_have_the_number_are_shown() {
    let asked_for = after(AskedFor::of_number(7), &[(10, 1, 7), (20, 7, 8), (30, 1, 8)]);
    assert_eq!([5, 15].map(|time_ns| asked_for.includes(7, time_ns)), [true, true]);
    assert_eq!([25, 35].map(|time_ns| asked_for.includes(8, time_ns)), [true, false]);
}
