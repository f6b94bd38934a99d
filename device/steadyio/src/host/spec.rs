// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload's `[host]`: what is in it, and what a workload with one may hold.

use std::time::Duration;

use serde::Deserialize;

use crate::range::bounded;
use crate::spec::{Ioprio, Job, SWEEP_AT, SpecError, Workload};

/// The table's name; a sweep reaches its keys as `host.KEY`, so no job may have this name.
pub const HOST: &str = "host";

/// Cores, and what each I/O costs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// How many threads can compute at the same time.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub cores: u64,
    /// Of these, how many can be in request-pre.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub pre_at_once: u64,
    /// Software before the device's queue, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub pre_us: u64,
    /// Software after the device's interrupt, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub post_us: u64,
}

impl Host {
    /// Time of request-pre.
    pub fn pre(&self) -> Duration {
        Duration::from_micros(self.pre_us)
    }

    /// Time of request-post.
    pub fn post(&self) -> Duration {
        Duration::from_micros(self.post_us)
    }
}

fn refuse<T>(text: String) -> Result<T, SpecError> {
    Err(SpecError(text))
}

/// Checks what `[host]` and `threads` ask of the rest of a workload.
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
    if workload.length.ios.is_none() {
        return refuse("length.seconds: with a [host] the length is in ios".into());
    }
    check_job(job)
}

fn check_job(job: &Job) -> Result<(), SpecError> {
    let name = &job.name;
    let faults = [
        (job.depth > 1, "depth", "more than 1: use threads"),
        (job.think_us > 0, "think_us", "above 0"),
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
