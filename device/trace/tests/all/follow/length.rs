// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long traces. No event may look at all that came before it, or the time grows with the square.

use std::io::Write;

use steadyio_trace::event::{Call, Comm, Dev, EventKind, Extent};
use steadyio_trace::io::Processes;
use steadyio_trace::report::question::Question;
use steadyio_trace::sched::{SchedTask, Switch, Waking};
use steadyio_trace::source::detect::Format;
use steadyio_trace::source::text::Text;

use crate::events::{DISK, Script, extent};
use crate::made::record;

const COUNT: u64 = 20_000;

#[test]
fn many_losses_after_many_ios() {
    let mut script = Script::new();
    for nth in 0..COUNT {
        // Each loss also leaves an open request.
        let (place, open) = (extent("R", 64, 8), extent("R", (nth + 1) << 14, 8));
        script.at(nth * 100).on(0).by(1).enter(Call::Read);
        script.block('Q', place).block('G', place).block('D', place).at(nth * 100 + 10);
        script.block('C', place).exit(Call::Read, 4096).enter(Call::Fsync).exit(Call::Fsync, 0);
        script.by(2).block('Q', open).block('G', open).on(1).at(nth * 100 + 20);
        script.what(EventKind::Lost { count: 1, since_ns: Some(nth * 100 + 15) });
    }
    let account = script.follow().account;
    assert_eq!((account.matched, account.hit_by_loss), (COUNT, COUNT));
}

#[test]
fn many_issues_at_one_place_without_completions() {
    let mut script = Script::new();
    for place in [extent("WS", 64, 8), extent("FF", 0, 0)] {
        (0..COUNT).for_each(|nth| _ = script.at(nth).by(1).block('D', place));
    }
    script.events.sort_by_key(|event| event.time_ns);
    assert_eq!(script.follow().account.at_the_edges, 2 * COUNT);
}

#[test]
fn many_threads_that_use_a_partition() {
    let mut script = Script::new();
    let (place, partition) = (extent("R", 2_056, 8), Dev { minor: 1, ..DISK });
    for nth in 0..COUNT {
        script.at(nth * 10).by(nth as u32 + 1);
        script.what(EventKind::BioRemap { to: place, from: (partition, 8) }).block('Q', place);
        script.block('G', place).block('D', place).at(nth * 10 + 5).block('C', place);
    }
    assert_eq!(script.follow().account.matched, COUNT);
}

#[test]
fn many_commits_after_many_threads() {
    let mut script = Script::new();
    for nth in 0..COUNT {
        script.at(nth).by(nth as u32 + 1).enter(Call::Read).exit(Call::Read, 0);
    }
    for nth in 0..COUNT {
        script.at(COUNT + nth).named(7, "jbd2/sda1-8");
        script.what(EventKind::JournalCommitStart { dev: DISK, transaction: 3 });
        script.what(EventKind::JournalCommitEnd { dev: DISK, transaction: 3 });
    }
    assert_eq!(script.follow().account.calls_without_request, COUNT);
}

#[test]
fn many_flushes_next_to_many_open_requests() {
    let mut script = Script::new();
    let flush = extent("FF", 0, 0);
    for nth in 0..COUNT {
        let place = extent("R", nth * 8, 8);
        script.at(nth * 10).by(1).block('Q', place).block('G', place);
        script.at(nth * 10 + 1).block('D', flush).at(nth * 10 + 5).block('C', flush);
    }
    assert_eq!(script.follow().account.matched, COUNT);
}

#[test]
fn many_waits_for_the_many_operations_of_another_thread() {
    let mut script = Script::new();
    for request in 1..=COUNT {
        let what = EventKind::UringSubmit { request, sq_thread: true, operation: None };
        script.at(request).by(5).what(what);
    }
    for nth in 0..COUNT {
        script.at(COUNT + nth + 1).by(1).enter(Call::IoUringEnter).exit(Call::IoUringEnter, 0);
    }
    assert_eq!(script.follow().calls_without_request.len() as u64, COUNT);
}

#[test]
fn many_losses_of_a_cpu_without_events() {
    let mut text = Vec::new();
    for nth in 0..COUNT {
        writeln!(text, "CPU:9 [LOST 1 EVENTS]").unwrap();
        writeln!(text, "sh-10 [001] 1.{nth:06}: contention_end: 0x1 (ret=0)").unwrap();
    }
    let events: Vec<_> = Text::new(Format::Ftrace, text.as_slice(), "t").flatten().collect();
    let lost = EventKind::Lost { count: COUNT, since_ns: Some(0) };
    assert_eq!(events.last().map(|event| (event.cpu, event.what)), Some((9, lost)));
}

#[test]
fn many_processes_each_started_by_the_one_before() {
    let mut processes = Processes::new([].into(), [(1, "/a".to_string())].into());
    (1..COUNT as u32).for_each(|pid| processes.start(pid, pid + 1, false));
    assert!((1..=COUNT as u32).all(|pid| processes.cgroup(pid) == Some("/a")));
    // Numbers are used again, so one seems to be its own ancestor.
    processes.start(9, 8, false);
    assert_eq!(processes.cgroup(8), Some("/a"));
}

#[test]
fn many_threads_that_use_device_mapper_without_allocations() {
    let mut script = Script::new();
    let mapped = Dev { major: 253, minor: 0 };
    for nth in 0..COUNT {
        let (above, below) = (Extent { dev: mapped, ..extent("R", 8, 8) }, extent("R", 64, 8));
        script.at(nth * 10).by(nth as u32 + 1).enter(Call::Pread64).block('Q', above);
        script.what(EventKind::BioRemap { to: below, from: (mapped, 8) }).block('Q', below);
        script.block('D', below).at(nth * 10 + 5).block('C', below).exit(Call::Pread64, 4096);
    }
    assert_eq!(script.follow().ios.len() as u64, COUNT);
}

fn task(pid: u32) -> SchedTask {
    SchedTask { pid, comm: Comm::default(), prio: 120 }
}

/// Thread 1 is woken by what runs on its CPU.
fn wake(script: &mut Script) {
    let waking = Waking { woken: task(1), context: None, completed_ns: None };
    script.by(0).what(EventKind::Waking(waking));
}

#[test]
fn many_wakeups_without_switches() {
    let mut script = Script::new();
    for nth in 0..COUNT {
        script.at(nth * 10).by(1).enter(Call::Fsync).at(nth * 10 + 3);
        wake(&mut script);
        script.at(nth * 10 + 5).by(1).exit(Call::Fsync, 0);
    }
    let record = record(&script.follow(), &Question::default());
    assert_eq!(record.calls[0].sum_ns, COUNT * 5);
}

#[test]
fn many_requests_and_sleeps_of_one_call() {
    let mut script = Script::new();
    let switch = |prev, next| {
        EventKind::Switch(Switch { prev: task(prev), runnable: prev == 0, next: task(next) })
    };
    script.by(0).what(switch(0, 1)).at(1).by(1).enter(Call::Fsync);
    for nth in 0..COUNT {
        let place = extent("W", nth * 16, 8);
        script.at(nth * 10 + 2).by(1).block('Q', place).block('G', place).block('D', place);
        script.what(switch(1, 0)).at(nth * 10 + 7).by(0).block('C', place);
        wake(&mut script);
        script.at(nth * 10 + 8).by(0).what(switch(0, 1));
    }
    script.at(COUNT * 10 + 5).by(1).exit(Call::Fsync, 0).at(COUNT * 10 + 6).what(switch(1, 0));
    let trace = script.follow();
    let record = record(&trace, &Question { worst: 1, ..Question::default() });
    assert_eq!(record.worst_ios[0].requests, COUNT);
    assert_eq!(record.calls[0].waits[0].ns, COUNT * 5);
}
