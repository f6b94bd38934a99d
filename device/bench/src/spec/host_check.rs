// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a workload with a `[host]`. `check` calls it.

use super::workload::{Ioprio, Job, SWEEP_AT, SpecError, Workload};

fn refuse<T>(text: String) -> Result<T, SpecError> {
    Err(SpecError(text))
}

/// Checks the requirements of `[host]` and `threads` on the rest of a workload.
pub fn check(workload: &Workload) -> Result<(), SpecError> {
    let Some(host) = &workload.host else {
        let with_threads = workload.job.iter().find(|job| job.threads > 1);
        return with_threads.map_or(Ok(()), |job| {
            let threads = job.threads;
            refuse(format!("job {}: threads = {threads}: only allowed with a [host]", job.name))
        });
    };
    if host.pre_at_once > host.cores {
        return refuse(format!(
            "host.pre_at_once = {}: must be 1 to cores = {}",
            host.pre_at_once, host.cores
        ));
    }
    if workload.filesystem.is_some() {
        return refuse("[filesystem]: not allowed with a [host], which uses the device".into());
    }
    let [job] = &workload.job[..] else {
        let jobs = workload.job.len();
        return refuse(format!("[[job]] appears {jobs} times: with a [host] there is one job"));
    };
    if host.command_us > 0 && job.op.mixed() {
        return refuse(format!(
            "host.command_us = {}: not allowed with an op that mixes reads and writes",
            host.command_us
        ));
    }
    if workload.length.ios.is_none() {
        return refuse("length.seconds: with a [host] the length is in ios".into());
    }
    check_job(job)
}

fn check_job(job: &Job) -> Result<(), SpecError> {
    let name = &job.name;
    let faults = [
        (job.depth > 1, "depth", "more than 1: use threads"),
        (job.processes > 1, "processes", "more than 1: use threads"),
        (job.think_us > 0, "think_us", "above 0"),
        (job.offset_mib > 0, "offset_mib", "above 0"),
        (job.ioprio != Ioprio::None, "ioprio", "other than \"none\""),
        (!job.at.is_empty(), SWEEP_AT, "given"),
    ];
    match faults.iter().find(|(found, ..)| *found) {
        Some((_, key, what)) => {
            refuse(format!("job {name}: {key} is {what}: not allowed with a [host]"))
        }
        None => Ok(()),
    }
}
