// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an I/O's own thread did while none of its requests was queued or in flight: one behaviour each.

use serde_json::{Value, json};
use steadyio_trace::event::{Call, Comm, Event, EventKind};
use steadyio_trace::sched::{Context, SchedTask, Switch, Waking};

use crate::events::{Script, extent, follow};
use crate::made::{US, question, valid};

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
    let waking = Waking { woken: task(READER), context };
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

/// The causes of the one I/O of these events, as the record has them but for their text; and the events that would tell more.
fn causes(events: &[Event]) -> (Vec<Value>, Vec<String>) {
    let record = steadyio_trace::report::record::Record::new(&follow(events), question());
    let record = valid(&record);
    let ios = record["worst_ios"].as_array().unwrap();
    assert_eq!(ios.len(), 1, "{record:#}");
    let missing = record["missing"].as_array().unwrap().iter();
    let missing = missing.map(|missing| missing["event"].as_str().unwrap().to_string()).collect();
    let mut causes = ios[0]["causes"].as_array().unwrap().clone();
    causes.iter_mut().for_each(|cause| drop(cause.as_object_mut().unwrap().remove("text")));
    (causes, missing)
}

fn waits_for_a_hog(script: &mut Script) {
    switch(script, 120, READER, "D", LOADER);
    wake(script, 212, LOADER, Some(Context::Interrupt));
    switch(script, 1_100, LOADER, "R", "other");
    switch(script, 1_200, "other", "S", READER);
}

#[test]
fn a_wait_for_a_cpu_names_who_had_it_longest_and_who_woke_the_thread() {
    let (causes, missing) = causes(&read(1_210, waits_for_a_hog).events);
    let woken = json!({"slept_ns": 12_000, "pid": 31, "comm": "loader", "context": "interrupt"});
    let had_cpu = json!({
        "pid": 31, "comm": "loader", "class": "real_time", "priority": 50, "ns": 888_000
    });
    let longest = json!({"ns": 988_000, "cpu": 1, "woken": woken, "had_cpu": had_cpu});
    let cause =
        json!({"cause": "cpu_wait", "ns": 988_000, "span": "post", "times": 1, "longest": longest});
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
    let (causes, _) = causes(&script.events);
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert_eq!(causes[0]["longest"]["woken"], Value::Null);
    let had_cpu = &causes[0]["longest"]["had_cpu"];
    assert_eq!((&had_cpu["class"], &had_cpu["priority"]), (&json!("normal"), &json!(-5)));
    // Once for 1 us after it was woken, too.
    assert_eq!((&causes[0]["ns"], &causes[0]["times"]), (&json!(1_781_000), &json!(2)));
    assert_eq!(had_cpu["ns"], 1_780_000);
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
    let (causes, _) = causes(&script.events);
    let woken =
        json!({"slept_ns": 3_000_000, "pid": 58, "comm": "kworker/1:1", "context": "thread"});
    let asleep = json!({"cause": "asleep", "ns": 3_000_000, "span": "submission", "times": 1,
        "longest": {"ns": 3_000_000, "woken": woken}});
    let running = json!({"cause": "running", "ns": 1_910_000, "span": "submission"});
    assert_eq!(causes, [asleep, running]);
}

#[test]
fn a_thread_that_only_runs_is_said_to_run() {
    let script = read(900, |script| {
        switch(script, 120, READER, "D", IDLE);
        wake(script, 200, IDLE, None);
        switch(script, 200, IDLE, "R", READER);
    });
    let (causes, _) = causes(&script.events);
    assert_eq!(causes, [json!({"cause": "running", "ns": 700_000, "span": "post"})]);
}

#[test]
fn a_waking_that_comes_before_its_thread_has_left_the_cpu_counts() {
    let script = read(1_210, |script| {
        wake(script, 118, LOADER, Some(Context::Thread));
        switch(script, 120, READER, "D", LOADER);
        switch(script, 1_200, LOADER, "S", READER);
    });
    let (causes, _) = causes(&script.events);
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert_eq!(causes[0]["ns"], 1_000_000);
    assert_eq!(causes[0]["longest"]["woken"]["slept_ns"], Value::Null, "before the span began");
}

#[test]
fn without_the_waking_nothing_is_said() {
    let is_waking = |event: &Event| matches!(event.what, EventKind::Waking(_));
    let mut events = read(1_210, waits_for_a_hog).events;
    events.retain(|event| !is_waking(event));
    let (causes, missing) = causes(&events);
    assert_eq!(causes, Vec::<Value>::new());
    assert!(missing.contains(&"sched:sched_waking".to_string()), "{missing:?}");
}

#[test]
fn without_any_switch_of_its_own_nothing_is_said() {
    let of_reader = |event: &Event| match event.what {
        EventKind::Switch(Switch { prev, next, .. }) => prev.pid == 7 || next.pid == 7,
        EventKind::Waking(_) => true,
        _ => false,
    };
    let mut events = read(1_210, waits_for_a_hog).events;
    events.retain(|event| !of_reader(event));
    assert_eq!(causes(&events).0, Vec::<Value>::new());
    let sched = |event: &Event| matches!(event.what, EventKind::Switch(_) | EventKind::Waking(_));
    events.retain(|event| !sched(event));
    let (causes, missing) = causes(&events);
    assert_eq!(causes, Vec::<Value>::new());
    assert!(missing.contains(&"sched:sched_switch".to_string()), "{missing:?}");
}

#[test]
fn where_events_were_lost_in_it_nothing_is_said() {
    let mut events = read(1_210, waits_for_a_hog).events;
    let place = events.iter().position(|event| event.time_ns >= 212 * US).unwrap();
    let what = EventKind::Lost { count: 3, since_ns: None };
    events.insert(place, Event { time_ns: 211 * US, cpu: 0, what, ..events[place] });
    let trace = follow(&events);
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
}

#[test]
fn where_only_some_threads_were_traced_it_is_told_who_had_the_cpu_last() {
    let mut events = read(1_210, waits_for_a_hog).events;
    let of_reader = |event: &Event| match event.what {
        EventKind::Switch(Switch { prev, next, .. }) => prev.pid == 7 || next.pid == 7,
        _ => true,
    };
    events.retain(of_reader);
    let (causes, _) = causes(&events);
    let had_cpu =
        json!({"pid": 32, "comm": "other", "class": "normal", "priority": -5, "ns": null});
    assert_eq!(causes[0]["longest"]["had_cpu"], had_cpu);
}

#[test]
fn a_time_on_the_cpu_of_which_the_end_is_missing_does_not_count() {
    let mut events = read(1_210, waits_for_a_hog).events;
    // The loader's end is not there: it is not known when the other one began.
    events.retain(|event| !(event.pid == 31 && matches!(event.what, EventKind::Switch(_))));
    let (causes, _) = causes(&events);
    let had_cpu = &causes[0]["longest"]["had_cpu"];
    assert_eq!((&had_cpu["comm"], &had_cpu["ns"]), (&json!("other"), &Value::Null));
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
    let (causes, _) = causes(&script.events);
    assert_eq!(causes, [json!({"cause": "dirty_throttle", "ns": 14_000_000, "times": 2})]);
}
