// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an I/O's own thread did while none of its requests was queued or in flight: one behaviour each.

use serde_json::{Value, json};
use steadyio_trace::event::{Call, Comm, Event, EventKind};
use steadyio_trace::report::words;
use steadyio_trace::sched::{Context, SchedTask, Switch, Waking};

use crate::events::{Script, extent, follow};
use crate::made::{US, question, record, valid};

const READER: &str = "reader";
const LOADER: &str = "loader";
const IDLE: &str = "swapper/1";

/// All the threads there are, by their names.
fn task(name: &str) -> SchedTask {
    let (pid, prio) = match name {
        READER => (7, 120),
        LOADER => (31, 49),
        "other" => (32, 115),
        "kworker/1:1" => (58, 100),
        "jbd2/loop0-8" => (70, 120),
        _ => (0, 120),
    };
    SchedTask { pid, comm: Comm::new(name.as_bytes()), prio }
}

/// CPU 1 goes on with `next`; `state` is that of `prev`, as the kernel prints it.
fn switch(script: &mut Script, at_us: u64, prev: &str, state: &str, next: &str) {
    let what = Switch { prev: task(prev), runnable: state == "R", next: task(next) };
    script.at(at_us * US).on(1).named(task(prev).pid, prev).what(EventKind::Switch(what));
}

/// The reader is woken on CPU 1.
fn wake(script: &mut Script, at_us: u64, by: &str, context: Option<Context>) {
    let waking = Waking { woken: task(READER), context, completed_ns: None };
    script.at(at_us * US).on(1).named(task(by).pid, by).what(EventKind::Waking(waking));
}

/// One direct read, from 100 us to `exit_us`: its bio at 110, its request in flight from 115 to 200.
fn read(exit_us: u64, between: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::new();
    // The reader is seen before, and the worker: so the switches are those of all threads.
    switch(&mut script, 10, IDLE, "R", "kworker/1:1");
    switch(&mut script, 20, "kworker/1:1", "S", READER);
    let extent = extent("RS", 2048, 8);
    let reader = |script: &mut Script, at_us: u64| {
        script.at(at_us * US).on(1).named(7, READER);
    };
    reader(&mut script, 100);
    script.enter(Call::Pread64);
    reader(&mut script, 110);
    script.block('Q', extent).block('G', extent);
    reader(&mut script, 115);
    script.block('D', extent);
    between(&mut script);
    reader(&mut script, exit_us);
    script.exit(Call::Pread64, 4096);
    switch(&mut script, exit_us + 10, READER, "S", IDLE);
    script.at(200 * US).on(0).named(0, "swapper/0").block('C', extent);
    script.events.sort_by_key(|event| event.time_ns);
    script
}

/// The causes of the one I/O of these events, as the record has them; and the events that would tell more.
fn told(events: &[Event]) -> (Vec<Value>, Vec<String>) {
    let record = valid(&record(&follow(events), &question()));
    let ios = record["worst_ios"].as_array().unwrap();
    assert_eq!(ios.len(), 1, "{record:#}");
    let missing = record["missing"].as_array().unwrap().iter();
    let missing = missing.map(|missing| missing["event"].as_str().unwrap().to_string()).collect();
    (ios[0]["causes"].as_array().unwrap().clone(), missing)
}

/// In words.
fn causes(events: &[Event]) -> Vec<String> {
    let text = |cause: &Value| cause["text"].as_str().unwrap().to_string();
    told(events).0.iter().map(text).collect()
}

fn waits_for_a_busy_task(script: &mut Script) {
    switch(script, 120, READER, "D", LOADER);
    wake(script, 212, LOADER, Some(Context::Interrupt));
    switch(script, 1_100, LOADER, "R", "other");
    switch(script, 1_200, "other", "S", READER);
}

const WAITED_FOR_A_BUSY_TASK: &str = "988.0 us of post waiting for a CPU: CPU 1 where loader (31), real-time 50, ran for \
                                888.0 us of it, woken after 12.0 us by an interrupt on top of loader (31)";

#[test]
fn a_wait_for_a_cpu_names_who_had_it_longest_and_who_woke_the_thread() {
    let (causes, missing) = told(&read(1_210, waits_for_a_busy_task).events);
    let woken = json!({"slept_ns": 12_000, "pid": 31, "comm": "loader", "context": "interrupt"});
    let had_cpu = json!({
        "pid": 31, "comm": "loader", "class": "real_time", "priority": 50, "ns": 888_000
    });
    let longest = json!({"ns": 988_000, "cpu": 1, "woken": woken, "had_cpu": had_cpu});
    let cause = json!({"cause": "own_thread", "ns": 988_000, "span": "post", "waited_for": "cpu", "times": 1,
        "longest": longest, "text": WAITED_FOR_A_BUSY_TASK});
    assert_eq!(causes, [cause]);
    assert!(!missing.iter().any(|event| event.starts_with("sched:")), "{missing:?}");
}

#[test]
fn a_thread_that_lost_its_cpu_is_told_from_one_that_was_woken() {
    let script = read(2_000, |script| {
        switch(script, 120, READER, "D", IDLE);
        wake(script, 205, IDLE, Some(Context::Softirq));
        switch(script, 206, IDLE, "R", READER);
        switch(script, 210, READER, "R", "other");
        switch(script, 1_990, "other", "S", READER);
    });
    // Once for 1 us after it was woken, too.
    let expected = "1781.0 us of post waiting for a CPU 2 times, longest 1780.0 us: CPU 1 where other (32), \
                    nice -5, ran for 1780.0 us of it, preempted";
    assert_eq!(causes(&script.events), [expected]);
}

#[test]
fn a_sleep_before_the_first_bio_is_submission_and_names_its_waker() {
    let mut script = read(210, |script| {
        switch(script, 120, READER, "D", IDLE);
        wake(script, 205, IDLE, Some(Context::Softirq));
        switch(script, 206, IDLE, "R", READER);
    });
    // All of it later, but for the beginning of the call.
    for event in script.events.iter_mut().skip(3) {
        event.time_ns += 5_000 * US;
    }
    switch(&mut script, 1_000, READER, "D", IDLE);
    wake(&mut script, 4_000, "kworker/1:1", Some(Context::Thread));
    switch(&mut script, 4_100, IDLE, "R", READER);
    script.events.sort_by_key(|event| event.time_ns);
    let expected = [
        "3000.0 us of submission asleep, woken by kworker/1:1 (58)",
        "1910.0 us of submission running on a CPU 2 times, longest 1010.0 us",
    ];
    assert_eq!(causes(&script.events), expected);
    // Again, for a short time.
    switch(&mut script, 4_200, READER, "D", IDLE);
    wake(&mut script, 4_300, IDLE, None);
    switch(&mut script, 4_300, IDLE, "R", READER);
    script.events.sort_by_key(|event| event.time_ns);
    let expected =
        "3100.0 us of submission asleep 2 times, longest 3000.0 us, woken by kworker/1:1 (58)";
    assert_eq!(causes(&script.events)[0], expected);
}

#[test]
fn a_sleep_that_the_journals_thread_ended_is_said_to_be_for_the_journal() {
    let script = read(1_210, |script| {
        switch(script, 120, READER, "D", IDLE);
        wake(script, 1_200, "jbd2/loop0-8", Some(Context::Thread));
        switch(script, 1_201, IDLE, "R", READER);
    });
    let expected = "1000.0 us of post waiting for the journal, woken by jbd2/loop0-8 (70)";
    assert_eq!(causes(&script.events), [expected]);
}

#[test]
fn a_thread_that_only_runs_is_said_to_run() {
    let script = read(900, |script| {
        switch(script, 120, READER, "D", IDLE);
        wake(script, 200, IDLE, None);
        switch(script, 200, IDLE, "R", READER);
    });
    assert_eq!(causes(&script.events), ["700.0 us of post running on a CPU"]);
}

#[test]
fn a_waking_that_comes_before_its_thread_has_left_the_cpu_counts() {
    let script = read(1_210, |script| {
        wake(script, 118, LOADER, Some(Context::Thread));
        switch(script, 120, READER, "D", LOADER);
        switch(script, 1_200, LOADER, "S", READER);
    });
    let expected = "1000.0 us of post waiting for a CPU: CPU 1 where loader (31), real-time 50, ran for 1000.0 us of it, \
                    woken before by loader (31)";
    assert_eq!(causes(&script.events), [expected]);
}

fn is_of_sched(event: &Event) -> bool {
    matches!(event.what, EventKind::Switch(_) | EventKind::Waking(_))
}

fn is_of_reader(event: &Event) -> bool {
    match event.what {
        EventKind::Switch(Switch { prev, next, .. }) => prev.pid == 7 || next.pid == 7,
        _ => false,
    }
}

fn is_waking(event: &Event) -> bool {
    matches!(event.what, EventKind::Waking(_))
}

#[test]
fn without_its_wakings_or_switches_nothing_is_said_of_a_thread() {
    type Without = fn(&Event) -> bool;
    let cases: [(Without, Option<&str>); 3] = [
        (is_waking, Some("sched:sched_waking")),
        (|event| is_of_reader(event) || is_waking(event), None),
        (is_of_sched, Some("sched:sched_switch")),
    ];
    for (without, expected) in cases {
        let mut events = read(1_210, waits_for_a_busy_task).events;
        events.retain(|event| !without(event));
        let (causes, missing) = told(&events);
        assert_eq!(causes, Vec::<Value>::new());
        assert!(expected.is_none_or(|event| missing.contains(&event.to_string())), "{missing:?}");
    }
}

#[test]
fn where_events_were_lost_in_it_nothing_is_said() {
    let mut events = read(1_210, waits_for_a_busy_task).events;
    let place = events.iter().position(|event| event.time_ns >= 212 * US).unwrap();
    let what = EventKind::Lost { count: 3, since_ns: None };
    events.insert(place, Event { time_ns: 211 * US, cpu: 0, what, ..events[place] });
    let trace = follow(&events);
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
}

/// Where only some threads were traced, or the end of one's time on the CPU is missing: it is not known how long.
#[test]
fn without_switches_of_others_it_is_told_who_had_the_cpu_last() {
    let loaders_end = |event: &Event| event.pid == 31 && matches!(event.what, EventKind::Switch(_));
    let of_others = |event: &Event| is_of_sched(event) && !is_of_reader(event) && !is_waking(event);
    let without: [&dyn Fn(&Event) -> bool; 2] = [&of_others, &loaders_end];
    for without in without {
        let mut events = read(1_210, waits_for_a_busy_task).events;
        events.retain(|event| !without(event));
        let found = &causes(&events)[0];
        assert!(found.contains(": CPU 1 where other (32), nice -5, ran last, "), "{found}");
    }
}

#[test]
fn a_writer_that_was_throttled_is_said_to_be_with_the_time_of_its_pauses() {
    let mut script = Script::new();
    let extent = extent("WS", 2048, 8);
    script.at(100 * US).on(1).named(7, READER).enter(Call::Write);
    for (at_us, ms) in [(200, 4), (4_200, 10), (14_900, 0)] {
        script.at(at_us * US).what(EventKind::DirtyPause { pause_ns: ms * 1_000 * US });
    }
    script.at(14_500 * US).by(8).what(EventKind::DirtyPause { pause_ns: 1_000 * US });
    script.at(15_000 * US).named(7, READER).block('Q', extent).block('G', extent);
    script.at(15_010 * US).block('D', extent);
    script.at(15_900 * US).block('C', extent);
    script.at(16_000 * US).exit(Call::Write, 4096);
    script.events.sort_by_key(|event| event.time_ns);
    let expected = "14000.0 us of submission throttled in balance_dirty_pages";
    assert_eq!(causes(&script.events), [expected]);
}

#[test]
fn who_ended_a_sleep_is_named_only_as_far_as_it_is_known() {
    let cases = [
        (("jbd2/loop0-8", 70, Some(Context::Thread)), "by jbd2/loop0-8 (70)"),
        (("ksoftirqd/0", 16, Some(Context::Softirq)), "by ksoftirqd/0 (16)"),
        (("dd", 60, Some(Context::Softirq)), "by a softirq on top of dd (60)"),
        (("dd", 60, None), "by dd (60) or an interrupt on top of it"),
        (("swapper/0", 0, None), "by an interrupt on an idle CPU"),
    ];
    for ((comm, pid, context), expected) in cases {
        assert_eq!(words::by(comm, pid, context), expected);
    }
}

/// Reads every 10 ms; behind each the thread computes for so many us. It runs 40 us before each, 1 us until it sleeps,
/// and 1 us behind the wakeup.
fn computing(us: &[u64]) -> Script {
    let mut script = Script::new();
    for (number, computes_us) in us.iter().enumerate() {
        let at_us = 10_000 * (number as u64 + 1);
        let extent = extent("RS", 2048 + 8 * number as u64, 8);
        wake(&mut script, at_us - 50, IDLE, None);
        switch(&mut script, at_us - 40, IDLE, "R", READER);
        script.at(at_us * US).on(1).named(7, READER);
        script.enter(Call::Pread64).block('Q', extent).block('G', extent).block('D', extent);
        switch(&mut script, at_us + 1, READER, "S", IDLE);
        script.at((at_us + 90) * US).on(0).named(0, "swapper/0").block('C', extent);
        wake(&mut script, at_us + 91, IDLE, None);
        switch(&mut script, at_us + 99, IDLE, "R", READER);
        script.at((at_us + 100) * US).on(1).named(7, READER).exit(Call::Pread64, 4096);
        switch(&mut script, at_us + 100 + computes_us, READER, "S", IDLE);
    }
    script
}

/// Of the one thread of these events.
fn cpu_per_io(events: &[Event]) -> Value {
    let record = valid(&record(&follow(events), &question()));
    assert_eq!(record["threads"].as_array().unwrap().len(), 1, "{record:#}");
    record["threads"][0]["cpu_per_io"].clone()
}

#[test]
fn what_a_thread_computes_from_one_io_to_the_next_is_counted_with_its_largest() {
    let found = cpu_per_io(&computing(&[200, 700, 300, 5]).events);
    assert_eq!((found["count"].as_u64(), found["max_ns"].as_u64()), (Some(3), Some(742_000)));
    assert_eq!(found["p50_ns"], 342_000);
}

#[test]
fn it_is_unknown_if_a_switch_is_missing() {
    let mut events = computing(&[200, 700, 300]).events;
    let switched_in =
        |event: &&Event| matches!(event.what, EventKind::Switch(to) if to.next.pid == 7);
    let missing = *events.iter().filter(switched_in).nth(3).unwrap();
    events.retain(|event| *event != missing);
    assert_eq!(cpu_per_io(&events), Value::Null);
    let reads: Vec<Event> =
        events.into_iter().filter(|event| !matches!(event.what, EventKind::Switch(_))).collect();
    assert_eq!(cpu_per_io(&reads), Value::Null);
}
