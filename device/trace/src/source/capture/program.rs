// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starting the program to trace, in a PID namespace other than the initial one.
//!
//! There is no way to ask for the number that its events will have. But what this thread does in an instance of
//! its own, it finds there with such numbers: a mark, and the start of the program.

use std::io;
use std::process::{Child, Command};

use super::CaptureError;
use crate::source::tracefs::{Instance, Tracefs};

const FORK: &str = "sched_process_fork:";
const MARK: &str = "steady";

/// What events call a thread and the process that it started.
#[derive(Debug, PartialEq)]
pub(super) struct Numbers {
    pub parent: u32,
    pub child: u32,
}

/// Starts a program, and finds its number and that of the calling thread.
pub(super) fn spawn(
    command: &mut Command,
    note: &mut dyn FnMut(String),
) -> Result<(Child, Numbers), CaptureError> {
    let instance = Instance::create(Tracefs::find()?, note)?;
    instance.write("events/sched/sched_process_fork/enable", "1")?;
    instance.write("tracing_on", "1")?;
    instance.write("trace_marker", MARK)?;
    let mut child = command.spawn().map_err(CaptureError::Program)?;
    let numbers = instance.read("trace").map(|text| parse(&text));
    match numbers {
        Ok(Some(numbers)) => Ok((child, numbers)),
        not_found => {
            // Without its number nothing of it would be shown. If it has ended, this fails.
            let _ = child.kill().and_then(|()| child.wait());
            let what = "finding the program's number outside this PID namespace".into();
            let error = match not_found {
                Err(error) => io::Error::other(error),
                _ => io::Error::other("its start is not in the trace"),
            };
            Err(CaptureError::Hold { what, error })
        }
    }
}

/// From the text of `trace`: who wrote the mark, and the first process that it started then.
fn parse(text: &str) -> Option<Numbers> {
    let mark = format!(": tracing_mark_write: {MARK}");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&mark));
    let parent = thread_of(lines.next()?)?;
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
