// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the keys for the arrivals of a job's I/Os. `check` calls it.

use crate::spec::workload::{Class, FileSync, Job, Pattern, SpecError, Workload};

/// Checks all jobs.
pub fn check(workload: &Workload) -> Result<(), SpecError> {
    for job in &workload.job {
        let checked = match job.arrivals {
            None => check_without(job),
            Some(pattern) => check_pattern(job, pattern).and_then(|()| check_load(job, workload)),
        };
        checked.map_err(|text| SpecError(format!("job {}: {text}", job.name)))?;
    }
    check_who_ends(workload)
}

fn keys(job: &Job) -> [(&'static str, Option<u64>); 10] {
    [
        ("gap_us", job.gap_us),
        ("gap_us_min", job.gap_us_min),
        ("jitter_us", job.jitter_us),
        ("burst", job.burst),
        ("on_ms", job.on_ms),
        ("off_ms", job.off_ms),
        ("late_us", job.late_us),
        ("late_every_ms", job.late_every_ms),
        ("thread_arrivals", job.thread_arrivals),
        ("fifo", job.fifo),
    ]
}

fn check_without(job: &Job) -> Result<(), String> {
    match keys(job).into_iter().find(|(_, value)| value.is_some()) {
        Some((key, _)) => Err(format!("{key}: only allowed with arrivals")),
        None if job.sync != FileSync::None => Err("sync: only allowed with arrivals".into()),
        None => Ok(()),
    }
}

fn check_pattern(job: &Job, pattern: Pattern) -> Result<(), String> {
    let word = pattern.word();
    let Some(gap_us) = job.gap_us.filter(|&gap_us| gap_us > 0) else {
        return Err(format!("arrivals = \"{word}\" needs gap_us of 1 or more"));
    };
    let only = |key, value: Option<u64>, of: Pattern| match value {
        Some(_) if pattern != of => {
            Err(format!("{key} is for arrivals = \"{}\", not \"{word}\"", of.word()))
        }
        _ => Ok(()),
    };
    only("jitter_us", job.jitter_us, Pattern::Periodic)?;
    only("gap_us_min", job.gap_us_min, Pattern::Sporadic)?;
    if pattern == Pattern::Sporadic && job.gap_us_min.is_none() {
        return Err("arrivals = \"sporadic\" needs gap_us_min".into());
    }
    // With at most this jitter, no arrival precedes that of the previous period.
    if let Some(jitter_us) = job.jitter_us.filter(|&jitter_us| 2 * jitter_us > gap_us) {
        return Err(format!("jitter_us = {jitter_us}: must be 0 to half of gap_us = {gap_us}"));
    }
    if let Some(gap_us_min) = job.gap_us_min.filter(|&gap_us_min| gap_us_min > gap_us) {
        return Err(format!(
            "gap_us_min = {gap_us_min}: must be 0 to gap_us = {gap_us}, the mean distance"
        ));
    }
    both("on_ms", job.on_ms, "off_ms", job.off_ms)?;
    both("late_us", job.late_us, "late_every_ms", job.late_every_ms)
}

fn both(one: &str, first: Option<u64>, other: &str, second: Option<u64>) -> Result<(), String> {
    match (first, second) {
        (Some(_), None) => Err(format!("{one} needs {other}")),
        (None, Some(_)) => Err(format!("{other} needs {one}")),
        _ => Ok(()),
    }
}

/// Checks the load of a job with arrivals. `steady`'s own threads run it, and support less than
/// fio.
fn check_load(job: &Job, workload: &Workload) -> Result<(), String> {
    if workload.host.is_some() {
        return Err("arrivals: not allowed with a [host]".into());
    }
    if job.depth > 1 {
        return Err(format!("arrivals with depth = {}: needs depth = 1", job.depth));
    }
    if job.processes > 1 {
        return Err(format!("arrivals with processes = {}: needs processes = 1", job.processes));
    }
    if job.think_us > 0 {
        return Err(format!("arrivals with think_us = {}: only one of them", job.think_us));
    }
    if job.sync != FileSync::None && (job.file.is_some() || !job.op.writes()) {
        return Err("sync: only for writes to the device itself; a file has file.sync".into());
    }
    if job.file.as_ref().is_some_and(|file| file.grow) {
        return Err("arrivals with file.grow: the file must be written in full beforehand".into());
    }
    Ok(())
}

/// Checks that the first real-time job has arrivals. Its end ends fio's jobs, so it must not be one
/// of them.
fn check_who_ends(workload: &Workload) -> Result<(), SpecError> {
    let Some(job) = workload.job.iter().find(|job| job.arrivals.is_some()) else { return Ok(()) };
    match workload.jobs_of(Class::Rt).next() {
        Some(first) if first.arrivals.is_some() => Ok(()),
        _ => Err(SpecError(format!(
            "job {}: arrivals: the first job of class \"rt\" must have arrivals, too",
            job.name
        ))),
    }
}
