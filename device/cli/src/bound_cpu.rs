// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a task's computing time per I/O in a trace of it: the longest one seen, which `steady
//! bound` adds.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use steadyio_bound::tasks::{Task, TaskSet};
use steadyio_trace::report::distribution::Distribution;
use steadyio_trace::report::record::TRACE_SCHEMA;

/// With fewer jobs, the longest one seen means little.
const JOBS_MIN: u64 = 100;

/// The range of `cpu_us` in a task set.
const CPU_NS_MAX: u64 = 60_000_000_000;

/// The used part of a record of `steady trace --json`.
#[derive(Deserialize)]
struct Record {
    schema: String,
    account: Account,
    threads: Vec<Thread>,
}

#[derive(Deserialize)]
struct Account {
    events_lost: u64,
}

#[derive(Deserialize)]
struct Thread {
    comm: String,
    cpu_per_io: Option<Distribution>,
}

/// The evidence for a task's `cpu_us`.
pub struct FromTrace {
    pub thread: String,
    pub cpu_us: u64,
    pub ios: u64,
    pub jobs: u64,
}

/// Fills in `cpu_us` of the tasks that do not state it. Returns the evidence for each task; None if
/// the file states the time.
pub fn fill(path: &Path, set: &mut TaskSet) -> anyhow::Result<Vec<Option<FromTrace>>> {
    let name = || path.display().to_string();
    let record = read(&fs::read_to_string(path).with_context(name)?).with_context(name)?;
    ensure!(
        set.tasks.iter().any(|task| task.cpu_us.is_none()),
        "{}: every task of {} has cpu_us (remove it from one, or omit --cpu-from)",
        name(),
        set.name
    );
    let mut found = Vec::new();
    for task in &mut set.tasks {
        let from = match task.cpu_us {
            Some(_) => None,
            None => Some(of_task(&record, task).with_context(name)?),
        };
        task.cpu_us = task.cpu_us.or(from.as_ref().map(|from| from.cpu_us));
        found.push(from);
    }
    Ok(found)
}

fn read(text: &str) -> anyhow::Result<Record> {
    let record: Record =
        serde_json::from_str(text).context("not a record of steady trace --json")?;
    let (schema, lost) = (&record.schema, record.account.events_lost);
    ensure!(schema == TRACE_SCHEMA, "schema = \"{schema}\": must be \"{TRACE_SCHEMA}\"");
    ensure!(lost == 0, "{lost} events were lost, and the largest may be among them: trace again");
    Ok(record)
}

fn of_task(record: &Record, task: &Task) -> anyhow::Result<FromTrace> {
    let thread = task.thread();
    let own: Vec<&Thread> = record.threads.iter().filter(|other| other.comm == thread).collect();
    if own.is_empty() {
        let mut names: Vec<&str> = record.threads.iter().map(|other| other.comm.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names = names.join(", ");
        bail!(
            "task {}: thread {thread} did no I/O in the trace, only {names} (set thread = \
             \"NAME\", or cpu_us)",
            task.name
        );
    }
    let Some(known) = own.iter().map(|of| of.cpu_per_io.as_ref()).collect::<Option<Vec<_>>>()
    else {
        bail!(
            "task {}: CPU times of thread {thread} are unknown (trace it with -- PROGRAM, --pid or \
             --sched for two I/Os or more, one at a time, or set cpu_us)",
            task.name
        );
    };
    let ios: u64 = known.iter().map(|cpu| cpu.count).sum();
    let jobs = ios / task.ios;
    ensure!(
        jobs >= JOBS_MIN,
        "task {}: {jobs} jobs of thread {thread} are too few: trace {JOBS_MIN} or more",
        task.name
    );
    let cpu_ns = known.iter().map(|cpu| cpu.max_ns).max().unwrap_or(0);
    ensure!(
        cpu_ns <= CPU_NS_MAX,
        "task {}: max_ns = {cpu_ns} of thread {thread}: must be 0 to {CPU_NS_MAX}",
        task.name
    );
    Ok(FromTrace { thread: thread.into(), cpu_us: cpu_ns.div_ceil(1_000), ios, jobs })
}
