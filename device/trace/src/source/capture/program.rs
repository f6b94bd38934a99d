// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starting the program to trace, by a thread of its own, which the kernel is told to trace: it then traces what that
//! thread starts, too, from its first moment on, and forgets the thread when it ends.
//!
//! In a PID namespace other than the initial one there is no way to ask for the numbers that events will have. But what
//! the thread does in an instance of its own, it finds there with such numbers: a mark, and the start of the program.

use std::io;
use std::process::{Child, Command};
use std::thread;

use rustix::thread::gettid;

use super::{CaptureError, add_pids};
use crate::source::pid_namespace;
use crate::source::tracefs::{Instance, Tracefs, TracefsError};

const FORK: &str = "sched_process_fork:";
const MARK: &str = "steady";

/// What events call a thread and the process that it started.
#[derive(Debug, PartialEq)]
pub(super) struct Numbers {
    pub parent: u32,
    pub child: u32,
}

/// Starts a program, and finds its number and that of the thread that started it. `of_threads` traces it from then on.
pub(super) fn spawn(
    command: &mut Command,
    of_threads: Option<&Instance>,
    note: &mut (dyn FnMut(String) + Send),
) -> Result<(Child, Numbers), CaptureError> {
    let start = || match pid_namespace::other_than_initial() {
        None => spawn_here(command, of_threads),
        Some(_) => spawn_elsewhere(command, of_threads, note),
    };
    thread::scope(|scope| {
        let panicked = |_| Err(CaptureError::Program(io::Error::other("the thread panicked")));
        scope.spawn(start).join().unwrap_or_else(panicked)
    })
}

/// By the calling thread.
fn spawn_here(
    command: &mut Command,
    of_threads: Option<&Instance>,
) -> Result<(Child, Numbers), CaptureError> {
    let parent = gettid().as_raw_nonzero().get().unsigned_abs();
    trace_thread(of_threads, parent)?;
    let child = command.spawn().map_err(CaptureError::Program)?;
    let numbers = Numbers { parent, child: child.id() };
    Ok((child, numbers))
}

fn trace_thread(of_threads: Option<&Instance>, number: u32) -> Result<(), TracefsError> {
    let Some(of_threads) = of_threads else { return Ok(()) };
    add_pids(of_threads, &[number])?;
    of_threads.write("tracing_on", "1")
}

/// By the calling thread, where events number it otherwise.
fn spawn_elsewhere(
    command: &mut Command,
    of_threads: Option<&Instance>,
    note: &mut dyn FnMut(String),
) -> Result<(Child, Numbers), CaptureError> {
    let instance = Instance::create(Tracefs::find()?, note)?;
    instance.write("events/sched/sched_process_fork/enable", "1")?;
    instance.write("tracing_on", "1")?;
    instance.write("trace_marker", MARK)?;
    let text = instance.read("trace")?;
    let Some(parent) = marker(&text) else {
        return Err(not_found("its mark is not in the trace"));
    };
    trace_thread(of_threads, parent)?;
    let mut child = command.spawn().map_err(CaptureError::Program)?;
    match instance.read("trace").map(|text| parse(&text)) {
        Ok(Some(numbers)) => Ok((child, numbers)),
        wrong => {
            // Without its number nothing of it would be shown. If it has ended, this fails.
            let _ = child.kill().and_then(|()| child.wait());
            let why = wrong.err().map(|error| error.to_string());
            Err(not_found(&why.unwrap_or_else(|| "its start is not in the trace".into())))
        }
    }
}

fn not_found(why: &str) -> CaptureError {
    let what = "finding the program's number outside this PID namespace".into();
    CaptureError::Hold { what, error: io::Error::other(why) }
}

/// From the text of `trace`: who wrote the mark.
fn marker(text: &str) -> Option<u32> {
    let mark = format!(": tracing_mark_write: {MARK}");
    thread_of(text.lines().find(|line| line.ends_with(&mark))?)
}

/// From the text of `trace`: who wrote the mark, and the first process that it started then.
fn parse(text: &str) -> Option<Numbers> {
    let parent = marker(text)?;
    let mark = format!(": tracing_mark_write: {MARK}");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&mark));
    let start = lines.find(|line| line.contains(FORK) && thread_of(line) == Some(parent))?;
    let child = start.rsplit_once("child_pid=")?.1.trim().parse().ok()?;
    Some(Numbers { parent, child })
}

/// `  NAME-NUMBER   [CPU] ...`, where NAME may hold anything.
fn thread_of(line: &str) -> Option<u32> {
    let before_time = line.split_once(": ")?.0;
    before_time.rsplit_once(" [")?.0.trim_end().rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parse(TEXT), Some(Numbers { parent: 70012, child: 70013 }));
    }

    #[test]
    fn without_a_mark_or_a_start_there_are_no_numbers() {
        let lines: Vec<&str> = TEXT.lines().collect();
        assert_eq!(parse(&lines[3..].join("\n")), None);
        assert_eq!(parse(&lines[..4].join("\n")), None);
    }
}
