// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of a program that a container starts, from the text of its own instance.

use steadyio_trace::source::capture::program::parse;

const TEXT: &str = "\
# tracer: nop
            other-9     [000] .....     1.000001: sched_process_fork: comm=other pid=9 child_comm=other child_pid=10
          a [x]-b-70012   [001] .....     1.000002: tracing_mark_write: steady
            other-9     [000] .....     1.000003: sched_process_fork: comm=other pid=9 child_comm=other child_pid=11
          a [x]-b-70012   [001] .....     1.000004: sched_process_fork: comm=a [x]-b pid=70012 child_comm=a [x]-b child_pid=70013
          a [x]-b-70012   [001] .....     1.000005: sched_process_fork: comm=a [x]-b pid=70012 child_comm=a [x]-b child_pid=70014
";

#[test]
fn the_first_start_after_the_mark_by_who_wrote_it_is_the_programs() {
    let lines: Vec<&str> = TEXT.lines().collect();
    assert_eq!(parse(TEXT), Some((70012, Some(70013))));
    assert_eq!(parse(&lines[..4].join("\n")), Some((70012, None)), "no start");
    assert_eq!(parse(&lines[3..].join("\n")), None, "no mark");
}
