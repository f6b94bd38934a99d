// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of ftrace, trace-cmd and perf: samples that `traces/record.sh` recorded, and line by line.

use steadyio_trace::event::{Event, EventKind};
use steadyio_trace::report::question::Question;
use steadyio_trace::source::detect::Format::{self, Ftrace, Perf};
use steadyio_trace::source::merge::Merge;
use steadyio_trace::source::table::wanted;
use steadyio_trace::source::text::Text;
use steadyio_trace::source::{Position, Problem};

use crate::events::follow;
use crate::made::record;
use crate::samples::{all_events, block_events, bytes, split};

fn read(format: Format, text: &str) -> (Vec<Event>, Vec<Problem>) {
    split(Text::new(format, text.as_bytes(), "t"))
}

fn sample(format: Format, name: &str) -> Vec<Event> {
    all_events(Text::new(format, bytes(name).as_slice(), name))
}

#[test]
fn the_samples_of_all_forms_of_ftrace_say_the_same() {
    let trace = sample(Ftrace, "host-trace.txt");
    assert!(trace.len() > 400, "{}", trace.len());
    let report = sample(Ftrace, "host-report-t.txt");
    assert_eq!(trace.len(), report.len());
    for (one, other) in trace.iter().zip(&report) {
        let rounded_ns = (other.time_ns + 500) / 1000 * 1000;
        assert_eq!((one.time_ns, one.cpu, one.pid), (rounded_ns, other.cpu, other.pid), "{one:?}");
        match (one.what, other.what) {
            // ftrace hides addresses, trace-cmd prints them.
            (EventKind::UringSubmit { .. }, EventKind::UringSubmit { .. })
            | (EventKind::UringFileGet { .. }, EventKind::UringFileGet { .. }) => {}
            (
                EventKind::UringComplete { result, .. },
                EventKind::UringComplete { result: other, .. },
            ) => assert_eq!(result, other),
            (one, other) => assert_eq!(one, other),
        }
    }
    for name in ["host-tgid.txt", "host-no-irq-info.txt"] {
        let beginning = sample(Ftrace, name);
        assert_eq!(beginning, trace[..beginning.len()], "{name}");
    }
    let named = |event: &Event| !event.comm.is_empty();
    let queued = |event: &&Event| matches!(event.what, EventKind::BioQueue(_));
    assert!(trace.iter().filter(queued).all(named), "the name that block events repeat");
}

#[test]
fn the_latency_format_counts_from_the_first_event() {
    let trace = sample(Ftrace, "host-trace.txt");
    let latency = sample(Ftrace, "host-latency.txt");
    let (first_ns, first_latency_ns) = (trace[0].time_ns, latency[0].time_ns);
    for (one, other) in trace.iter().zip(&latency) {
        assert_eq!((one.cpu, one.pid, one.what), (other.cpu, other.pid, other.what));
        let (since_ns, other_ns) = (one.time_ns - first_ns, other.time_ns - first_latency_ns);
        assert!(other_ns.abs_diff(since_ns) <= 1000, "{one:?} {other:?}");
    }
}

#[test]
fn perf_and_ftrace_saw_the_same_block_events() {
    let perf = sample(Perf, "host-perf-fields-ns.txt");
    let ftrace = sample(Ftrace, "host-trace.txt");
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
fn default_fields_of_perf_say_the_same_as_chosen_ones() {
    let fields = sample(Perf, "host-perf-fields-ns.txt");
    for (one, other) in fields.iter().zip(&sample(Perf, "host-perf.txt")) {
        assert_eq!(Event { time_ns: one.time_ns / 1000 * 1000, ..*one }, *other);
    }
}

#[test]
fn names_of_threads_may_look_like_anything() {
    for (format, thread, comm, pid) in [
        (Ftrace, "kworker/1:2-ev-77", "kworker/1:2-ev", 77),
        (Ftrace, "jbd2/sda1-8-301", "jbd2/sda1-8", 301),
        (Ftrace, "a-1 [000] b-12", "a-1 [000] b", 12),
        (Ftrace, "<...>-12", "", 12),
        (Ftrace, "<idle>-0", "<idle>", 0),
        (Ftrace, "my [0] app-12    (   11)", "my [0] app", 12),
        (Ftrace, "sh-12    (-------)", "sh", 12),
        (Ftrace, " -12", "", 12),
        (Ftrace, "buffer:               dd-12", "dd", 12),
        (Ftrace, "buffer:            <...>-12", "", 12),
        (Ftrace, "buffer:  a-name-of-15-by-12", "a-name-of-15-by", 12),
        (Perf, "kworker/1:2-ev 77", "kworker/1:2-ev", 77),
        (Perf, "a 1 [000] b 12", "a 1 [000] b", 12),
        (Perf, "swapper     0", "swapper", 0),
        (Perf, "fio  10/12", "fio", 12),
        (Perf, ":18682 18682", "", 18682),
        (Perf, "Web Content 7", "Web Content", 7),
    ] {
        let event = match format {
            Perf => " 5.000001:  irq:irq_handler_exit: irq=1 ret=handled",
            _ => "d.h1. 5.000001: irq_handler_exit: irq=1 ret=handled",
        };
        let events = all_events(Text::new(
            format,
            format!("  {thread}  [003] {event}\n").as_bytes(),
            thread,
        ));
        let Event { time_ns, cpu, pid: found_pid, comm: found, what } = events[0];
        assert_eq!((found.to_string().as_str(), found_pid), (comm, pid), "{thread}");
        assert_eq!((cpu, time_ns, what), (3, 5_000_001_000, EventKind::Interrupt));
    }
}

#[test]
fn a_thread_without_a_name_takes_it_from_the_event() {
    let (events, _) =
        read(Ftrace, "<...>-12 [003] ..... 5.000001: block_bio_queue: 8,0 R 8 + 8 [dd]\n");
    assert_eq!(events[0].comm.to_string(), "dd");
}

#[test]
fn losses_come_with_the_event_behind_them() {
    let text = "# entries-in-buffer/entries-written: 10/30   #P:2\n\
                sh-10 [001] ..... 1.000001: contention_end: 0x1 (ret=0)\n\
                ##### CPU 0 buffer started ####\n\
                sh-11 [000] ..... 1.000002: contention_end: 0x1 (ret=0)\n\
                CPU:1 [LOST 12 EVENTS]\n\
                sh-10 [001] ..... 1.000003: unknown: 1\n\
                CPU:0 [EVENTS DROPPED]\n\
                sh-10 [000] ..... 1.000004: contention_end: 0x1 (ret=0)\n\
                CPU:0 [LOST EVENTS]\n";
    let lost = |text, format| {
        let loss = |event: Event| match event.what {
            EventKind::Lost { count, .. } => Some((event.time_ns, event.cpu, count)),
            _ => None,
        };
        all_events(Text::new(format, text, "t")).into_iter().filter_map(loss).collect::<Vec<_>>()
    };
    let expected = [
        (1_000_001_000, 1, 20),
        (1_000_002_000, 0, 0),
        (1_000_003_000, 1, 12),
        (1_000_004_000, 0, 0),
        (1_000_004_000, 0, 0),
    ];
    assert_eq!(lost(text.as_bytes(), Ftrace), expected);
    let of_perf = b":5 5 [001]  2.000001: PERF_RECORD_LOST lost 173\n";
    assert_eq!(lost(&of_perf[..], Perf), [(2_000_001_000, 1, 173)]);
}

#[test]
fn a_loss_lasts_from_the_last_event_of_its_cpu_to_the_next() {
    let text = "sh-10 [001] 1.000005: contention_end: 0x1 (ret=0)\n\
                sh-10 [001] 1.000006: not_needed: 1\n\
                CPU:1 [LOST 2 EVENTS]\n\
                sh-11 [000] 1.000004: contention_end: 0x1 (ret=0)\n\
                sh-10 [001] 3.000000: contention_end: 0x1 (ret=0)\n";
    let events = all_events(Text::new(Ftrace, text.as_bytes(), "t"));
    let lost = EventKind::Lost { count: 2, since_ns: Some(1_000_006_000) };
    assert_eq!((events[2].time_ns, events[2].cpu, events[2].what), (3_000_000_000, 1, lost));
}

#[test]
fn a_hole_in_a_file_is_a_loss() {
    let hole = "\0".repeat(512);
    let text = format!(
        "sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\n\
         sh-10 [0{hole}n_end: 0x1 (ret=0)\n\
         sh-10 [001] 1.000009: contention_end: 0x1 (ret=0)\n"
    );
    let (events, problems) = read(Ftrace, &text);
    let lost = EventKind::Lost { count: 0, since_ns: Some(1_000_001_000) };
    assert_eq!((events.len(), events[1].what, problems.len()), (3, lost, 1));
}

#[test]
fn a_loss_of_perf_begins_at_the_last_event_of_its_cpu() {
    let text = "dd 7 [001] 1.000001: sched:not_needed: 1\n\
                dd 7 [000] 1.000002: lock:contention_end: 0x1 (ret=0)\n\
                dd 7 [001] 2.000000: PERF_RECORD_LOST lost 5\n";
    let events = all_events(Text::new(Perf, text.as_bytes(), "t"));
    let lost = EventKind::Lost { count: 5, since_ns: Some(1_000_001_000) };
    assert_eq!((events.len(), events[1].what), (2, lost));
}

#[test]
fn a_loss_of_one_file_is_not_shortened_by_the_events_of_another() {
    let lost = "sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\nCPU:1 [LOST 1 EVENTS]\n\
                sh-10 [001] 1.000009: contention_end: 0x1 (ret=0)\n";
    let whole = "dd-1 [000] 1.000004: block_rq_issue: 8,0 R 4096 () 8 + 8 [dd]\n\
                 dd-1 [000] 1.000005: block_rq_complete: 8,0 R () 8 + 8 [0]\n\
                 dd-1 [001] 1.000006: contention_end: 0x1 (ret=0)\n";
    let texts = [lost, whole].map(|text| Text::new(Ftrace, text.as_bytes(), "t"));
    let trace = follow(&all_events(Merge::new(texts.into())));
    assert_eq!((trace.account.matched, trace.account.hit_by_loss), (0, 1));
}

#[test]
fn counts_of_lost_events_end_at_the_largest_number() {
    let line = "CPU:0 [LOST 18446744073709551615 EVENTS]\n\
                sh-10 [000] 1.000001: contention_end: 0x1 (ret=0)\n";
    let text = [line, line].concat();
    let trace = follow(&all_events(Text::new(Ftrace, text.as_bytes(), "t")));
    assert_eq!(trace.account.events_lost, u64::MAX);
    assert!(record(&trace, &Question::default()).is_flawed());
}

#[test]
fn events_and_stacks_that_nobody_needs_are_counted() {
    let ftrace = "# tracer: nop\n\ncpus=2\nCPU 1 is empty\nversion = 7\n\
                sh-10 [001] 1.000001: sched_move_numa: a ==> b\n\
                sh-10 [001] 1.000001: sched_move_numa: a ==> b\n\
                sh-10 [001] 1.000002: sys_getpid()\n\
                sh-10 [001] 1.000003: sys_getpid -> 0x1\n\
                sh-10 [001] 1.000004: vfs_read <-ksys_read\n \
                => vfs_read\n";
    let perf = "dd 7 [000] 1.000001: lock:contention_end: 0x1 (ret=0)\n\
                \tffffffff81b4757f blk_start_plug+0xcf ([kernel.kallsyms])\n\
                \n\
                dd 7 [000] 1.000002: sched:sched_move_numa: a ==> b\n\
                dd 7 [000] 1.000002: PERF_RECORD_COMM: dd:7/7\n";
    for (format, text, events, skipped) in [(Ftrace, ftrace, 0, 6), (Perf, perf, 1, 3)] {
        let mut source = Text::new(format, text.as_bytes(), "t");
        assert!(source.by_ref().all(|item| item.is_ok_and(|_| events == 1)));
        assert_eq!(source.skipped, skipped, "{format:?}");
    }
}

#[test]
fn a_stack_behind_an_event_is_skipped() {
    let text = "sh-10 [001] ..... 1.000001: contention_end: 0x1 (ret=0)\n\
                sh-10 [001] ..... 1.000002: <stack trace>\n => vfs_read\n => ksys_read\n\
                sh-10 [001] ..... 1.000003: <user stack trace>\n =>  <00007f2>\n\
                sh-10 [001]  1.000004: kernel_stack:         <stack trace >\n=> vfs_read (ffff)\n";
    let mut source = Text::new(Ftrace, text.as_bytes(), "t");
    let events: Vec<_> = source.by_ref().collect();
    assert_eq!((events.len(), source.skipped), (1, 7), "{events:?}");
    assert!(events[0].is_ok(), "{events:?}");
}

#[test]
fn a_thread_whose_name_looks_like_a_stack_has_events() {
    let line = " =>a-name-of-15b-12 [001] ..... 1.000001: contention_end: 0x1 (ret=0)\n";
    let (events, problems) = read(Ftrace, line);
    assert_eq!((events.len(), problems), (1, vec![]));
    assert_eq!((events[0].pid, events[0].comm.to_string().as_str()), (12, "=>a-name-of-15b"));
}

#[test]
fn a_thread_that_has_exited_is_unknown_to_perf() {
    for thread in [":-1 1052/-1", ":-1 -1", ":-1 -1/-1"] {
        let line =
            format!("{thread} [000] 2.000001: block:block_rq_complete: 8,0 RS () 8 + 8 [0]\n");
        let (events, problems) = read(Perf, &line);
        assert_eq!(problems, [], "{thread}");
        assert_eq!((events[0].pid, events[0].comm.to_string().as_str()), (0, ""), "{thread}");
    }
}

#[test]
fn neighbours_in_the_wrong_order_are_put_right() {
    let text = "sh-10 [001] 1.000005: contention_end: 0x1 (ret=0)\nsh-11 [000] 1.000004: contention_end: 0x1 (ret=0)\n";
    let (events, problems) = read(Ftrace, text);
    assert_eq!(problems, []);
    assert_eq!([events[0].time_ns, events[1].time_ns], [1_000_004_000, 1_000_005_000]);
}

#[test]
fn a_second_trace_in_the_file_is_a_problem() {
    let mut text: String = (0..2000)
        .map(|place| format!("sh-10 [001] 9.{place:06}: contention_end: 0x1 (ret=0)\n"))
        .collect();
    text.push_str("sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\n");
    let (events, problems) = read(Ftrace, &text);
    assert_eq!((events.len(), problems.len()), (2000, 1));
    assert_eq!(problems[0].place, Position::Line(2001));
    assert!(problems[0].what.contains("goes back in time"), "{}", problems[0].what);
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    let line = "sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\r\n";
    let (events, problems) = read(Ftrace, &format!("\u{feff}{line}{line}"));
    assert_eq!((events.len(), problems), (2, vec![]));
}

#[test]
fn a_line_that_is_understood_in_part_is_no_event() {
    for (format, before, line, expected) in [
        (Ftrace, "1.000001: ", "block_rq_issue: 8,0 R 4096 () 20x8 + 8 [sh]", "` + ` at `x8"),
        (Ftrace, "1.000001: ", "block_rq_issue: 8,0 R 4096 () 2048 + 8 [sh", "expected `]`"),
        (Ftrace, "1.000001: ", "block_rq_issue: 8,0 r 4096 () 2048 + 8 [sh]", "an operation"),
        (Ftrace, "1.000001: ", "contention_end: 0x1 (ret=0) x", "the end of the line"),
        (
            Ftrace,
            "1.000001: ",
            "block_rq_issue: 8,0 R 4096 () 2048 + 4294967296 [sh]",
            "values within their limits",
        ),
        (Ftrace, "1.000001: ", "block_rq_complete: 8,0 R () 8 + 8 [0] x", "the end of the line"),
        (Ftrace, "1.000001: ", "sys_read(fd: 3, buf: 0, count: 0x10", "expected `)` at `buf"),
        (Ftrace, "1.000001: ", "sys_read -> 4k", "the end of the line"),
        (Ftrace, "1.000001: ", "sched_waking: comm=dd pid=60 prio=120", "` target_cpu=`"),
        (Ftrace, "1.000001: ", "sched_switch: a:5 [120] S ==> b:6", "` [`"),
        (Ftrace, "1,000001: ", "contention_end: 0x1 (ret=0)", "SECONDS.DECIMALS"),
        (Ftrace, "1.0001: ", "contention_end: 0x1 (ret=0)", "SECONDS.DECIMALS"),
        (Ftrace, "99999999999.000001: ", "contention_end: 0x1 (ret=0)", "SECONDS.DECIMALS"),
        (Ftrace, "1.000001: ", "", "the name of an event"),
        (Ftrace, "1.000001: ", "block plug", "EVENT: VALUES"),
        (Ftrace, "..... 77: ", "contention_end: 0x1 (ret=0)", "trace clock mono"),
        (Perf, "1,000001: ", "lock:contention_end: 0x1 (ret=0)", "LC_ALL=C"),
        (Perf, "1.00001: ", "lock:contention_end: 0x1 (ret=0)", "6 or 9 decimals"),
        (Perf, "1.000001: ", "contention_end: 0x1 (ret=0)", "SYSTEM:EVENT: VALUES"),
        (Perf, "1.000001: ", "250000 cycles: ffff", "SYSTEM:EVENT: VALUES"),
        (Perf, "1.000001: ", "block:block_bio_queue: 8,0 R 8 + 8 [dd", "expected `]`"),
        (Perf, "1.000001: ", "PERF_RECORD_LOST lost x", "expected lost at `x`"),
    ] {
        let thread = if format == Perf { "dd 7 [000]" } else { "sh-10 [001]" };
        is_problem(format, &format!("{thread} {before}{line}"), expected);
    }
    for (format, line, expected) in [
        (Ftrace, "hello", "COMM-PID [CPU]"),
        (
            Ftrace,
            "a-name-that-is-too-long-10 [001] 1.000001: contention_end: 0x1 (ret=0)",
            "COMM-PID [CPU]",
        ),
        (Ftrace, "# tracer: function_graph", "tracer nop"),
        (Ftrace, "# entries-in-buffer/entries-written: 10/x", "two numbers of entries"),
        (Ftrace, "CPU:1 [LOST x EVENTS]", "CPU:NUMBER [LOST COUNT EVENTS]"),
        (Perf, "dd 7 1.000001: lock:contention_end: 0x1 (ret=0)", "COMM TID [CPU] TIME: EVENT"),
        (Perf, "dd [000] 1.000001: lock:contention_end: 0x1 (ret=0)", "COMM TID [CPU] TIME: EVENT"),
    ] {
        is_problem(format, line, expected);
    }
}

fn is_problem(format: Format, line: &str, expected: &str) {
    let (events, problems) = read(format, &format!("{line}\n"));
    assert_eq!((events, problems.len()), (vec![], 1), "{line}");
    assert_eq!(problems[0].place, Position::Line(1));
    assert!(problems[0].what.contains(expected), "{line}: {}", problems[0].what);
}

#[test]
fn a_time_without_decimals_ends_reading_only_before_the_first_event() {
    let good = "sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\n";
    let cut = "sh-10 [001] 1: contention_end: 0x1 (ret=0)\n";
    for (text, events) in [(format!("{good}{cut}{good}"), 2), (format!("{cut}{good}"), 0)] {
        let (found, problems) = read(Ftrace, &text);
        assert_eq!((found.len(), problems.len()), (events, 1), "{text}");
        assert!(problems[0].what.contains("the time 1 has no decimals"), "{}", problems[0].what);
    }
}

#[test]
fn every_event_of_the_table_says_something_of_any_values() {
    for row in wanted() {
        let line = format!("sh-10 [001] 1.000001: {}: ?\n", row.name);
        let (events, problems) = read(Ftrace, &line);
        assert_eq!(events.len() + problems.len(), 1, "{line}");
    }
}

#[test]
fn what_is_not_text_is_a_problem_of_its_line() {
    let good = "sh-10 [001] 1.000001: contention_end: 0x1 (ret=0)\n";
    let long = "x".repeat(3 << 20);
    let text = format!("{good}a\0b\n{good}{long}\n{good}{}", good.trim_end());
    let (events, problems) = read(Ftrace, &text);
    // A line that is too long may hide others.
    let lost = EventKind::Lost { count: 0, since_ns: Some(1_000_001_000) };
    let what = events.iter().map(|event| event.what);
    let end = EventKind::LockEnd;
    assert_eq!(what.collect::<Vec<_>>(), [end, end, lost, end]);
    let found: Vec<_> = problems.into_iter().map(|problem| (problem.place, problem.what)).collect();
    let expected = [
        (2, "has a NUL byte: not text"),
        (4, "longer than 64 KiB: no line of a trace is"),
        (6, "the last line has no end: it may be cut"),
    ];
    assert_eq!(found, expected.map(|(line, what)| (Position::Line(line), what.to_owned())));
}
