// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the program to trace, in a separate thread that the kernel traces. The kernel then traces
//! the program from its first moment on, and forgets the thread when it ends.
//!
//! Only in the initial PID namespace does a call return the numbers that events have. In another
//! one, the thread uses a separate instance. It shows two events with such numbers: a mark, and the
//! start of the program.

use std::io;
use std::process::{Child, Command};
use std::thread;

use rustix::thread::gettid;

use super::add_pids;
use super::errors::because;
use crate::source::pid_namespace;
use crate::source::tracefs::{Instance, Tracefs};

const MARK: &str = "steady";

/// The program, its number in events, and the number of the thread that started it.
pub(super) type Started = (Child, u32, u32);

/// Starts the program; `of_threads` traces it from its start on.
pub(super) fn spawn(command: &mut Command, of_threads: Option<&Instance>) -> io::Result<Started> {
    let start = || match pid_namespace::other_than_initial() {
        None => spawn_here(command, of_threads),
        Some(_) => spawn_elsewhere(command, of_threads)
            .map_err(because("finding the program's number outside this PID namespace")),
    };
    thread::scope(|scope| {
        let panicked = |_| Err(io::Error::other("the thread panicked"));
        scope.spawn(start).join().unwrap_or_else(panicked)
    })
}

/// Starts the program in the calling thread, in the initial PID namespace.
fn spawn_here(command: &mut Command, of_threads: Option<&Instance>) -> io::Result<Started> {
    let parent = gettid().as_raw_nonzero().get().unsigned_abs();
    trace_thread(of_threads, parent)?;
    let child = command.spawn()?;
    let number = child.id();
    Ok((child, number, parent))
}

fn trace_thread(of_threads: Option<&Instance>, number: u32) -> io::Result<()> {
    let Some(of_threads) = of_threads else { return Ok(()) };
    add_pids(of_threads, &[number])?;
    of_threads.write("tracing_on", "1")
}

/// Starts the program in the calling thread, in another PID namespace.
fn spawn_elsewhere(command: &mut Command, of_threads: Option<&Instance>) -> io::Result<Started> {
    let instance = Instance::create(Tracefs::find()?)?;
    instance.write("events/sched/sched_process_fork/enable", "1")?;
    instance.write("tracing_on", "1")?;
    instance.write("trace_marker", MARK)?;
    let not_seen = |what| io::Error::other(format!("its {what} is not in the trace"));
    let (parent, _) = parse(&instance.read("trace")?).ok_or_else(|| not_seen("mark"))?;
    trace_thread(of_threads, parent)?;
    let mut child = command.spawn()?;
    let started = |text: String| parse(&text)?.1;
    let number = instance.read("trace").and_then(|text| started(text).ok_or(not_seen("start")));
    // Without its number, nothing of the program would be shown. Killing it fails if it has ended.
    let number = number.inspect_err(|_| drop(child.kill().and_then(|()| child.wait())))?;
    Ok((child, number, parent))
}

/// Parses the text of `trace`: the thread that wrote the mark, and the first process that it
/// started after it.
pub fn parse(text: &str) -> Option<(u32, Option<u32>)> {
    let mark = format!(": tracing_mark_write: {MARK}");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&mark));
    let parent = thread_of(lines.next()?)?;
    let is_start =
        |line: &&str| line.contains("sched_process_fork:") && thread_of(line) == Some(parent);
    let child = lines.find(is_start).and_then(|line| line.rsplit_once("child_pid="));
    Some((parent, child.and_then(|(_, number)| number.trim().parse().ok())))
}

/// The thread's number in `  NAME-NUMBER   [CPU] ...`, where NAME may contain any text.
fn thread_of(line: &str) -> Option<u32> {
    let before_time = line.split_once(": ")?.0;
    before_time.rsplit_once(" [")?.0.trim_end().rsplit_once('-')?.1.parse().ok()
}
