// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls without a request of their own, and what they waited for.

use serde_json::{Value, json};
use steadyio_trace::event::{Call, Comm, EventKind};
use steadyio_trace::io::Processes;
use steadyio_trace::report::question::Question;
use steadyio_trace::sched::{Context, SchedTask, Switch, Waking};
use steadyio_trace::source::capture::threads::AskedFor;

use crate::events::{DISK, Script, extent};
use crate::made::{record, valid};

/// Operation, what was waited for, and the times of all.
fn groups(script: &Script, question: Question) -> Vec<(&'static str, &'static str, u64)> {
    let record = record(&script.follow(), &question);
    let of = record.calls_without_request.iter();
    of.map(|group| (group.op, group.waited_for, group.sum_ns)).collect()
}

fn all(script: &Script) -> Vec<(&'static str, &'static str, u64)> {
    groups(script, Question::default())
}

/// All calls of the only name: how many, how long, and what that was waited for.
fn sum(script: &Script) -> (u64, u64, Vec<(&'static str, u64)>) {
    let record = record(&script.follow(), &Question::default());
    valid(&record);
    assert_eq!(record.calls.len(), 1, "{:?}", record.calls);
    let sum = &record.calls[0];
    let waits = sum.waits.iter().map(|wait| (wait.waited_for, wait.ns)).collect();
    (sum.count, sum.sum_ns, waits)
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
    assert_eq!(sum(&script), (1, 95, vec![("dirty_throttling", 90), ("unknown", 5)]));
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

fn task(pid: u32) -> SchedTask {
    SchedTask { pid, comm: Comm::new(b"task"), prio: 120 }
}

/// CPU 0 goes on with `next`; thread 1 sleeps or is woken in the scripts below.
fn switch(script: &mut Script, at_ns: u64, (prev, runnable, next): (u32, bool, u32)) {
    let what = Switch { prev: task(prev), runnable, next: task(next) };
    script.by(prev).at(at_ns).what(EventKind::Switch(what));
}

fn wake(script: &mut Script, at_ns: u64) {
    let (context, completed_ns) = (Some(Context::Thread), None);
    let what = Waking { woken: task(1), context, completed_ns };
    script.at(at_ns).what(EventKind::Waking(what));
}

/// Thread 1 is in `call` from 100 to 1,000; asleep from 110 until it is woken by what `meanwhile` adds, at 900, and
/// with a CPU again at 950.
fn sleeps_in(call: Call, meanwhile: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    script.by(1).at(100).enter(call);
    switch(&mut script, 110, (1, false, 0));
    meanwhile(&mut script);
    switch(&mut script, 950, (0, true, 1));
    script.by(1).at(1_000).exit(call, 0);
    switch(&mut script, 1_010, (1, false, 0));
    script
}

/// By thread 2, which queued it.
fn others_request(script: &mut Script) {
    let place = extent("R", 0, 8);
    script.by(2).at(200).block('Q', place).block('G', place).block('D', place);
    script.by(0).at(899).block('C', place);
}

#[test]
fn who_is_woken_by_the_completion_of_a_request_of_others_waited_for_it() {
    let script = sleeps_in(Call::Read, |script| {
        others_request(script);
        wake(script, 900);
    });
    let waits = vec![("other_request", 790), ("running", 60), ("cpu", 50)];
    assert_eq!(sum(&script), (1, 900, waits));
    assert_eq!(all(&script), [("read", "other_request", 900)]);
    let record = record(&script.follow(), &Question { worst: 1, ..Question::default() });
    let worst = &valid(&record)["worst_calls"][0];
    assert_eq!((&worst["total_ns"], &worst["call"]), (&json!(900), &json!("read")));
    let text = worst["waits"][0]["text"].as_str().unwrap();
    let expected = "0.8 us waiting for a request of others: read 4 KiB sector 0 by task (2), no system call seen";
    assert_eq!(text, expected);
}

#[test]
fn what_else_happens_on_that_cpu_before_the_wakeup_makes_its_reason_unknown() {
    let script = sleeps_in(Call::Read, |script| {
        others_request(script);
        script.what(EventKind::Fork { child: 9, same_process: false });
        wake(script, 900);
    });
    assert_eq!(sum(&script).2[0], ("unknown", 790));
    let later = sleeps_in(Call::Read, |script| {
        let place = extent("R", 0, 8);
        script.by(2).at(120).block('Q', place).block('G', place).block('D', place);
        script.by(3).at(899).block('C', place);
        script.by(0);
        wake(script, 900);
    });
    assert_eq!(sum(&later).2[0], ("unknown", 790), "on top of another thread");
}

#[test]
fn a_completion_of_an_unknown_request_tells_no_reason() {
    let script = sleeps_in(Call::Read, |script| {
        script.by(0).at(899).block('C', extent("R", 0, 8));
        wake(script, 900);
    });
    assert_eq!(sum(&script).2[0], ("unknown", 790));
}

#[test]
fn of_two_completions_at_one_time_none_is_taken_for_the_reason() {
    let script = sleeps_in(Call::Read, |script| {
        let written = extent("W", 64, 8);
        script.named(60, "kworker/u8:1").on(1).at(150).what(EventKind::WritebackStart { inode: 5 });
        script.block('Q', written).block('G', written).block('D', written);
        script.what(EventKind::WritebackEnd { inode: 5 }).on(0);
        others_request(script);
        script.on(1).block('C', written).on(0);
        wake(script, 900);
    });
    assert_eq!(sum(&script).2[0], ("unknown", 790));
}

#[test]
fn a_thread_does_not_go_on_with_the_page_fault_of_one_that_had_its_number() {
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    script.by(1).at(55).what(EventKind::AnyCall).at(100).what(EventKind::PageFault);
    switch(&mut script, 110, (1, false, 0));
    script.by(2).at(500).what(EventKind::Fork { child: 1, same_process: false });
    switch(&mut script, 950, (0, true, 1));
    script.by(1).at(1_000).what(EventKind::AnyCall);
    assert_eq!(script.follow().calls_without_request, []);
}

#[test]
fn a_second_event_of_the_same_start_leaves_a_thread_in_its_process() {
    let mut script = Script::new();
    for same_process in [true, false] {
        script.by(1).at(10).what(EventKind::Fork { child: 2, same_process });
    }
    assert_eq!(script.follow().processes.of(2), 1);
}

#[test]
fn who_is_woken_by_the_journals_thread_waited_for_the_journal() {
    let script = sleeps_in(Call::Fsync, |script| {
        script.named(50, "jbd2/sda1-8");
        wake(script, 900);
    });
    assert_eq!(sum(&script).2[0], ("journal", 790));
}

#[test]
fn a_sleep_for_a_lock_of_the_kernel_is_named_so() {
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    script.by(1).at(100).enter(Call::Write).at(105).what(EventKind::LockBegin);
    switch(&mut script, 110, (1, false, 2));
    script.by(2);
    wake(&mut script, 900);
    switch(&mut script, 950, (2, true, 1));
    script.by(1).at(955).what(EventKind::LockEnd).at(1_000).exit(Call::Write, 1);
    switch(&mut script, 1_010, (1, false, 2));
    // It spun for 5 ns before it slept, and went on 5 ns before it had the lock.
    let waits = vec![("lock", 800), ("cpu", 50), ("running", 50)];
    assert_eq!(sum(&script), (1, 900, waits));
}

#[test]
fn a_page_fault_that_sleeps_lasts_until_the_program_goes_on() {
    let place = extent("R", 0, 8);
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    // From memory: no wait. The program runs on, and loses its CPU.
    script.by(1).at(55).what(EventKind::AnyCall).at(60).what(EventKind::PageFault);
    switch(&mut script, 70, (1, true, 0));
    switch(&mut script, 90, (0, true, 1));
    script.by(1).at(100).what(EventKind::PageFault);
    script.at(105).block('Q', place).block('G', place).block('D', place);
    switch(&mut script, 110, (1, false, 0));
    script.by(0).at(800).block('C', place);
    wake(&mut script, 801);
    switch(&mut script, 850, (0, true, 1));
    // Again in the program, it loses its CPU.
    switch(&mut script, 900, (1, true, 0));
    switch(&mut script, 4_000, (0, true, 1));
    script.by(1).at(5_000).enter(Call::Fsync).at(5_001).exit(Call::Fsync, 0);
    let trace = script.follow();
    let found: Vec<_> =
        trace.ios.iter().map(|io| (io.call, io.entered_ns, io.exited_ns, io.bytes)).collect();
    assert_eq!(found, [(Call::PageFault, 100, 850, 4096)]);
    assert_eq!(trace.calls_without_request.len(), 1, "only the fsync");
}

/// Seen on one CPU of a virtual machine whose kernel records no switch away from the idle task there.
#[test]
fn a_page_fault_of_which_no_switch_tells_that_it_went_on_lasts_until_its_thread_was_woken() {
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    script.by(1).at(55).what(EventKind::AnyCall).at(100).what(EventKind::PageFault);
    switch(&mut script, 110, (1, false, 0));
    script.by(0);
    wake(&mut script, 801);
    script.by(1).at(5_000).what(EventKind::AnyCall);
    let found = script.follow().calls_without_request;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].entered_ns, found[0].exited_ns), (100, 801));
}

#[test]
fn a_sleep_in_a_call_that_is_not_traced_is_no_page_fault() {
    let mut script = Script::new();
    switch(&mut script, 50, (0, true, 1));
    script.by(1).at(55).what(EventKind::AnyCall).at(60).what(EventKind::PageFault);
    script.at(70).what(EventKind::AnyCall);
    switch(&mut script, 80, (1, false, 0));
    wake(&mut script, 900);
    switch(&mut script, 950, (0, true, 1));
    script.by(1).at(1_000).what(EventKind::PageFault);
    assert_eq!(script.follow().calls_without_request, []);
}

#[test]
fn a_call_whose_requests_are_not_all_known_keeps_its_time() {
    let place = extent("R", 0, 8);
    let mut script = Script::new();
    script.by(1).at(10).enter(Call::Pread64);
    script.by(1).at(20).block('Q', place).block('G', place);
    // The same again from elsewhere: which of the two is issued is unknown.
    script.by(2).at(21).block('Q', place).block('G', place);
    script.by(1).at(22).block('D', place).at(23).block('D', place);
    script.at(80).block('C', place).at(81).block('C', place);
    script.by(1).at(90).exit(Call::Pread64, 4096);
    let trace = script.follow();
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
    let record = record(&trace, &Question { worst: 5, ..Question::default() });
    let worst: Value = valid(&record)["worst_calls"].clone();
    assert_eq!((&worst[0]["total_ns"], &worst[0]["incomplete"]), (&json!(80), &json!(true)));
}

#[test]
fn what_io_uring_waits_for_that_another_thread_submits_is_shown() {
    let mut script = Script::new();
    script.by(5).at(1).what(EventKind::UringSubmit {
        request: 9,
        sq_thread: true,
        operation: None,
    });
    script.by(1).at(2).enter(Call::IoUringEnter).at(700).exit(Call::IoUringEnter, 1);
    assert_eq!(all(&script), [("io_uring_enter", "unknown", 698)]);
}

#[test]
fn a_process_counts_for_the_cgroup_of_who_started_it_unless_its_own_is_known() {
    let cgroups = [(10, "/a"), (20, "/b")].map(|(process, path)| (process, path.to_string()));
    let mut processes = Processes::new([(11, 10)].into(), cgroups.into());
    processes.start(11, 30, false);
    processes.start(30, 31, true);
    processes.start(30, 20, false);
    let of = |thread| processes.cgroup(thread);
    assert_eq!([of(11), of(30), of(31)], [Some("/a"); 3]);
    assert_eq!((of(20), of(99)), (Some("/b"), None));
}

/// A request of a flusher from 10 to 80, and a sync of thread 1 from 0 to 90, woken by `waker` if anybody.
fn sync_and_writeback(waker: Option<(u32, &str)>) -> Vec<(&'static str, u64)> {
    let mut script = Script::new();
    let task = |pid| SchedTask { pid, comm: Comm::new(b"task"), prio: 120 };
    script.by(1).at(0).enter(Call::Sync);
    if waker.is_some() {
        let (prev, next) = (task(1), task(0));
        script.at(1).what(EventKind::Switch(Switch { prev, runnable: false, next }));
    }
    let place = extent("W", 64, 8);
    script.named(60, "kworker/u8:1").on(1).at(9).what(EventKind::WritebackStart { inode: 5 });
    script.at(10).block('Q', place).block('G', place).block('D', place);
    script.at(11).what(EventKind::WritebackEnd { inode: 5 });
    script.by(0).at(80).block('C', place);
    if let Some((pid, name)) = waker {
        let context = Some(Context::Thread);
        let waking = Waking { woken: task(1), context, completed_ns: None };
        script.named(pid, name).at(85).what(EventKind::Waking(waking));
        let (prev, next) = (task(0), task(1));
        script.by(0).on(0).at(86).what(EventKind::Switch(Switch { prev, runnable: true, next }));
    }
    script.by(1).at(90).exit(Call::Sync, 0);
    sum(&script).2
}

#[test]
fn a_sync_waits_for_what_is_written_back() {
    let has = |waits: Vec<(&str, u64)>, what, ns| assert!(waits.contains(&(what, ns)), "{waits:?}");
    has(sync_and_writeback(None), "writeback", 70);
    has(sync_and_writeback(Some((60, "kworker/u8:1"))), "writeback", 84);
    has(sync_and_writeback(Some((61, "iou-wrk-1"))), "worker", 84);
    has(sync_and_writeback(Some((62, "other"))), "unknown", 84);
}

#[test]
fn reads_that_may_be_of_a_socket_are_not_among_the_worst() {
    let mut script = Script::new();
    let place = extent("R", 64, 8);
    let call = |script: &mut Script, at_ns: u64, call, fd, ns: u64| {
        script.by(1).at(at_ns).what(EventKind::CallEnter { call, fd: Some(fd) });
        script.at(at_ns + ns).exit(call, 0);
    };
    call(&mut script, 0, Call::Read, 4, 300);
    call(&mut script, 1_000, Call::Fsync, 5, 6);
    script.by(1).at(2_000).what(EventKind::CallEnter { call: Call::Read, fd: Some(6) });
    script.at(2_001).block('Q', place).block('G', place).block('D', place);
    script.by(0).at(2_010).block('C', place).by(1).at(2_020).exit(Call::Read, 4096);
    call(&mut script, 3_000, Call::Read, 6, 30);
    let question = Question { worst: 5, ..Question::default() };
    let worst = record(&script.follow(), &question).worst_calls;
    let worst: Vec<_> = worst.iter().map(|call| (call.call, call.total_ns)).collect();
    assert_eq!(worst, [("read", 30), ("fsync", 6)]);
}
