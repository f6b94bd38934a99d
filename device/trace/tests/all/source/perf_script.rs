// SPDX-License-Identifier: MIT OR Apache-2.0
//! perf's text, from samples that `traces/record.sh` recorded, and line by line.

use steadyio_trace::event::{Call, Event, EventKind};
use steadyio_trace::source::{Position, Problem, ftrace_text, perf_script};

use crate::samples::{all_events, block_events, bytes, split};

fn read(text: &str) -> (Vec<Event>, Vec<Problem>) {
    split(perf_script::read(text.as_bytes(), "p"))
}

fn problem(line: &str) -> String {
    let (events, problems) = read(&format!("{line}\n"));
    assert_eq!(events, [], "{line}");
    assert_eq!(problems.len(), 1, "{line}");
    assert_eq!(problems[0].place, Position::Line(1));
    problems[0].what.clone()
}

#[test]
fn perf_and_ftrace_saw_the_same_block_events() {
    let perf = all_events(perf_script::read(bytes("host-perf-fields-ns.txt").as_slice(), "perf"));
    let ftrace = all_events(ftrace_text::read(bytes("host-trace.txt").as_slice(), "ftrace"));
    let (perf, ftrace) = (block_events(&perf), block_events(&ftrace));
    assert!(perf.len() > 100, "{}", perf.len());
    assert_eq!(perf.len(), ftrace.len());
    for (one, other) in perf.iter().zip(&ftrace) {
        assert_eq!(one.0, other.0);
        // ftrace, whose probes ran first, prints µs.
        assert!(one.1.abs_diff(other.1) < 100_000, "{one:?} {other:?}");
    }
}

#[test]
fn default_fields_say_the_same_as_chosen_ones() {
    let fields = all_events(perf_script::read(bytes("host-perf-fields-ns.txt").as_slice(), "p"));
    let default = all_events(perf_script::read(bytes("host-perf.txt").as_slice(), "p"));
    for (one, other) in fields.iter().zip(&default) {
        assert_eq!(Event { time_ns: one.time_ns / 1000 * 1000, ..*one }, *other);
    }
}

#[test]
fn names_of_threads_may_look_like_anything() {
    for (thread, comm, pid) in [
        ("kworker/1:2-ev 77", "kworker/1:2-ev", 77),
        ("a 1 [000] b 12", "a 1 [000] b", 12),
        ("swapper     0", "swapper", 0),
        ("fio  10/12", "fio", 12),
        (":18682 18682", "", 18682),
        ("Web Content 7", "Web Content", 7),
    ] {
        let (events, problems) = read(&format!(
            "  {thread} [003]  5.000001:  irq:irq_handler_exit: irq=1 ret=handled\n"
        ));
        assert_eq!(problems, [], "{thread}");
        assert_eq!((events[0].comm.to_string().as_str(), events[0].pid), (comm, pid), "{thread}");
        assert_eq!((events[0].cpu, events[0].time_ns), (3, 5_000_001_000), "{thread}");
        assert_eq!(events[0].what, EventKind::IrqExit { irq: 1 });
    }
}

#[test]
fn system_calls_have_their_system_before_them() {
    let (events, problems) = read(
        "dd 7 [000] 1.000000001: syscalls:sys_enter_read: fd: 0x00000003, buf: 0x1, count: 0x00001000\n\
         dd 7 [000] 1.000000002: syscalls:sys_exit_read: 0xfffffffffffffffb\n",
    );
    assert_eq!(problems, []);
    let enter = EventKind::CallEnter { call: Call::Read, fd: Some(3) };
    assert_eq!(events[0].what, enter);
    assert_eq!(events[1].what, EventKind::CallExit { call: Call::Read, result: -5 });
}

#[test]
fn losses_that_perf_was_asked_to_show() {
    let (events, problems) = read(":5 5 [001]  2.000001: PERF_RECORD_LOST lost 173\n");
    assert_eq!(problems, []);
    assert_eq!(
        (events[0].what, events[0].cpu),
        (EventKind::Lost { count: 173, since_ns: None }, 1)
    );
}

#[test]
fn events_and_stacks_that_nobody_needs_are_counted() {
    let text = "dd 7 [000] 1.000001: block:block_plug: [dd]\n\
                \tffffffff81b4757f blk_start_plug+0xcf ([kernel.kallsyms])\n\
                \n\
                dd 7 [000] 1.000002: sched:sched_move_numa: a ==> b\n\
                dd 7 [000] 1.000002: PERF_RECORD_COMM: dd:7/7\n";
    let mut source = perf_script::read(text.as_bytes(), "p");
    assert_eq!(source.by_ref().count(), 1);
    assert_eq!(source.skipped(), 3);
}

#[test]
fn a_line_that_is_understood_in_part_is_no_event() {
    for (line, expected) in [
        ("dd 7 [000] 1,000001: block:block_plug: [dd]", "LC_ALL=C"),
        ("dd 7 [000] 1.00001: block:block_plug: [dd]", "6 or 9 decimals"),
        ("dd 7 1.000001: block:block_plug: [dd]", "COMM TID [CPU] TIME: EVENT"),
        ("dd 7 [000] 1.000001: block_plug: [dd]", "SYSTEM:EVENT: VALUES"),
        ("dd 7 [000] 1.000001: 250000 cycles: ffff", "SYSTEM:EVENT: VALUES"),
        ("dd 7 [000] 1.000001: block:block_plug: [dd", "expected `]`"),
        ("dd 7 [000] 1.000001: PERF_RECORD_LOST lost x", "a number of events"),
        ("dd [000] 1.000001: block:block_plug: [dd]", "COMM TID [CPU] TIME: EVENT"),
    ] {
        let what = problem(line);
        assert!(what.contains(expected), "{line}: {what}");
    }
}
