// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a workload that concern more than one key. Parsing calls them.

use std::collections::BTreeSet;

use steadyio_core::knobs::{chardisk_attribute, knob_attribute};
use steadyio_core::value::Value;

use crate::spec::arrivals_check;
use crate::spec::host::HOST;
use crate::spec::host_check;
use crate::spec::workload::{
    Class, Job, LENGTH, Op, POINT_PLACEHOLDER, SWEEP_AT, SWEEP_KNOBS, SpecError, Variant,
    WORKLOAD_SCHEMA, Workload,
};

/// The longest list of think times that is written for fio (one line per I/O, about 40 bytes).
const JITTERED_IOS_MAX: u64 = 1_000_000;

fn refuse<T>(text: String) -> Result<T, SpecError> {
    Err(SpecError(text))
}

/// Checks everything that serde cannot. It is called for the file as written and for every sweep
/// point.
pub fn check(workload: &Workload) -> Result<(), SpecError> {
    if workload.schema != WORKLOAD_SCHEMA {
        return refuse(format!("schema = \"{}\": must be \"{WORKLOAD_SCHEMA}\"", workload.schema));
    }
    check_name("name", &workload.name)?;
    check_unique("job", workload.job.iter().map(|job| job.name.as_str()))?;
    check_unique("variant", workload.variant.iter().map(|variant| variant.name.as_str()))?;
    if !workload.command.is_empty() {
        check_unique("command", workload.command.iter().map(|command| command.name.as_str()))?;
    }
    if !workload.busy.is_empty() {
        check_unique("busy", workload.busy.iter().map(|busy| busy.name.as_str()))?;
    }
    check_length(workload)?;
    check_filesystem(workload)?;
    host_check::check(workload)?;
    arrivals_check::check(workload)?;
    check_busy(workload)?;
    for job in &workload.job {
        check_job(job, workload)?;
    }
    check_processes(workload)?;
    for variant in &workload.variant {
        check_variant(variant, workload)?;
    }
    check_sweep(workload)
}

fn check_name(key: &str, name: &str) -> Result<(), SpecError> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let plain = |c: char| letter(c) || matches!(c, '.' | '-' | '_');
    if name.starts_with(letter) && name.len() <= 64 && name.chars().all(plain) {
        return Ok(());
    }
    refuse(format!(
        "{key} = \"{name}\": must be 1 to 64 of the characters a-z 0-9 . - _, the first a \
         letter or digit"
    ))
}

fn check_unique<'a>(table: &str, names: impl Iterator<Item = &'a str>) -> Result<(), SpecError> {
    let mut seen = BTreeSet::new();
    for name in names {
        check_name(&format!("{table}.name"), name)?;
        if !seen.insert(name) {
            return refuse(format!("{table}.name = \"{name}\": appears twice, names must differ"));
        }
    }
    if seen.is_empty() {
        return refuse(format!("[[{table}]] is missing: at least one is needed"));
    }
    Ok(())
}

fn check_length(workload: &Workload) -> Result<(), SpecError> {
    match (workload.length.ios, workload.length.seconds) {
        (Some(_), Some(_)) => refuse("length: exactly one of ios and seconds is allowed".into()),
        (None, None) => refuse("length: one of ios and seconds is needed".into()),
        _ => Ok(()),
    }
}

fn check_no_filesystem(workload: &Workload) -> Result<(), SpecError> {
    let has_own = |v: &&Variant| !(v.mkfs.is_empty() && v.mount.is_empty() && v.prepare.is_empty());
    let job = workload.job.iter().find(|job| job.file.is_some());
    let variant = workload.variant.iter().find(has_own);
    let user = (job.map(|job| format!("job {}: file", job.name)))
        .or(workload.command.first().map(|command| format!("command {}", command.name)))
        .or(variant.map(|variant| format!("variant {}: mkfs, mount or prepare", variant.name)));
    user.map_or(Ok(()), |user| refuse(format!("{user}: only allowed with a [filesystem]")))
}

/// Checks the files: each job has a suitable one, and all of them fit.
fn check_filesystem(workload: &Workload) -> Result<(), SpecError> {
    let Some(filesystem) = &workload.filesystem else { return check_no_filesystem(workload) };
    let mut files_mib = 0;
    for job in &workload.job {
        let name = &job.name;
        let Some(file) = &job.file else {
            return refuse(format!("job {name}: file is missing: needed with a [filesystem]"));
        };
        if file.grow && !matches!(job.op, Op::Write) {
            let op = job.op.word();
            return refuse(format!("job {name}: file.grow needs op = \"write\", not \"{op}\""));
        }
        files_mib += file.mib;
    }
    if files_mib >= filesystem.mib {
        return refuse(format!(
            "filesystem.mib = {}: must be more than the {files_mib} MiB of the jobs' files",
            filesystem.mib
        ));
    }
    Ok(())
}

fn check_job(job: &Job, workload: &Workload) -> Result<(), SpecError> {
    let name = &job.name;
    if name == LENGTH || name == HOST {
        return refuse(format!("job.name = \"{name}\": is taken by [{name}]"));
    }
    if job.offset_mib > 0 && job.file.is_some() {
        let offset_mib = job.offset_mib;
        return refuse(format!(
            "job {name}: offset_mib = {offset_mib}: only allowed without a file"
        ));
    }
    if job.read_percent.is_some() && !job.op.mixed() {
        let op = job.op.word();
        return refuse(format!(
            "job {name}: read_percent is for op = \"readwrite\" or \"randrw\", not \"{op}\""
        ));
    }
    if job.think_us > 0 && job.depth > 1 {
        return refuse(format!(
            "job {name}: think_us = {} with depth = {}: a pause after each I/O needs depth = 1",
            job.think_us, job.depth
        ));
    }
    if job.think_jitter_us > job.think_us {
        return refuse(format!(
            "job {name}: think_jitter_us = {}: must be 0 to think_us = {}",
            job.think_jitter_us, job.think_us
        ));
    }
    if job.think_jitter_us == 0 {
        return Ok(());
    }
    let first_rt = workload.jobs_of(Class::Rt).next().map(|first| &first.name);
    match workload.length.ios {
        Some(ios) if first_rt == Some(name) && ios <= JITTERED_IOS_MAX => Ok(()),
        _ => refuse(format!(
            "job {name}: think_jitter_us needs a known number of I/Os: only for the first job \
             of class \"rt\", with length.ios = 1 to {JITTERED_IOS_MAX}"
        )),
    }
}

/// Checks the jobs with several processes. fio would end the point when the first of them has done
/// the I/Os, and all of them write the same places of a file.
fn check_processes(workload: &Workload) -> Result<(), SpecError> {
    let ends_point = workload.jobs_of(Class::Rt).next().or(workload.job.first());
    for job in workload.job.iter().filter(|job| job.processes > 1) {
        let (name, processes) = (&job.name, job.processes);
        let counted = ends_point.filter(|_| workload.length.ios.is_some());
        if counted.is_some_and(|counted| counted.name == job.name) {
            return refuse(format!(
                "job {name}: processes = {processes}: must be 1, because length.ios counts this \
                 job's I/Os"
            ));
        }
        if job.file.as_ref().is_some_and(|file| file.grow) {
            return refuse(format!(
                "job {name}: processes = {processes} with file.grow: a file that grows needs \
                 processes = 1"
            ));
        }
    }
    Ok(())
}

fn check_variant(variant: &Variant, workload: &Workload) -> Result<(), SpecError> {
    let name = &variant.name;
    let (is_knob, allowed): (fn(&str) -> bool, _) = match variant.chardisk {
        true => (|key| chardisk_attribute(key).is_some(), "\"chardisk/NAME\""),
        false => (
            |key| knob_attribute(key).is_some(),
            "\"scheduler\", \"iosched/NAME\" or \"queue/NAME\"",
        ),
    };
    if let Some(key) = variant.knobs.keys().find(|key| !is_knob(key)) {
        return refuse(format!("variant {name}: knobs.\"{key}\": must be {allowed}"));
    }
    if variant.chardisk {
        check_chardisk(variant, workload)?;
    }
    for key in &variant.optional {
        if !variant.knobs.contains_key(key) {
            return refuse(format!("variant {name}: optional \"{key}\": not one of its knobs"));
        }
    }
    Ok(())
}

/// Checks a character device: it has no file system, and libaio blocks in each submission to it.
fn check_chardisk(variant: &Variant, workload: &Workload) -> Result<(), SpecError> {
    let name = &variant.name;
    if workload.filesystem.is_some() {
        return refuse(format!("variant {name}: chardisk: not allowed with a [filesystem]"));
    }
    if variant.kworkers_fifo.is_some() {
        return refuse(format!(
            "variant {name}: kworkers_fifo: no kernel worker completes I/Os of a chardisk"
        ));
    }
    if variant.declare_block_us > 0 {
        return refuse(format!(
            "variant {name}: declare_block_us: a chardisk has no k2 to declare tasks to"
        ));
    }
    match workload.job.iter().find(|job| job.depth > 1) {
        Some(job) => refuse(format!(
            "variant {name}: chardisk: job {} has depth = {}: must be 1, several processes have \
             several I/Os in flight",
            job.name, job.depth
        )),
        None => Ok(()),
    }
}

fn uses_point(variant: &Variant) -> bool {
    variant.knobs.values().any(|value| *value == Value::Word(POINT_PLACEHOLDER.into()))
}

fn check_sweep(workload: &Workload) -> Result<(), SpecError> {
    let knobs_swept = workload.sweep.as_ref().is_some_and(|sweep| sweep.key == SWEEP_KNOBS);
    if let Some(variant) = workload.variant.iter().find(|v| uses_point(v) && !knobs_swept) {
        return refuse(format!(
            "variant {}: \"{POINT_PLACEHOLDER}\" needs a [sweep] with key = \"{SWEEP_KNOBS}\"",
            variant.name
        ));
    }
    check_at(workload)?;
    let Some(sweep) = &workload.sweep else { return Ok(()) };
    if sweep.values.is_empty() {
        return refuse("sweep.values = []: at least one value is needed".into());
    }
    let unique: BTreeSet<_> = sweep.values.iter().collect();
    if unique.len() != sweep.values.len() {
        return refuse("sweep.values: a value appears twice, values must differ".into());
    }
    Ok(())
}

/// Checks that `at` names points of a sweep over `at`.
fn check_at(workload: &Workload) -> Result<(), SpecError> {
    let sweep = workload.sweep.as_ref().filter(|sweep| sweep.key == SWEEP_AT);
    let points = sweep.map_or(&[][..], |sweep| &sweep.values);
    let jobs = workload.job.iter().map(|job| ("job", &job.name, &job.at));
    let commands = workload.command.iter().map(|command| ("command", &command.name, &command.at));
    let busy = workload.busy.iter().map(|busy| ("busy", &busy.name, &busy.at));
    for (table, name, at) in jobs.chain(commands).chain(busy) {
        if let Some(unknown) = at.iter().find(|value| !points.contains(value)) {
            return refuse(format!(
                "{table} {name}: at has {unknown}: must be values of a [sweep] with key = \"at\""
            ));
        }
    }
    let used = workload.job.iter().any(|job| !job.at.is_empty())
        || workload.command.iter().any(|command| !command.at.is_empty())
        || workload.busy.iter().any(|busy| !busy.at.is_empty());
    match sweep {
        Some(_) if !used => {
            refuse("sweep.key = \"at\": no job, command or busy task has the key at".into())
        }
        _ => Ok(()),
    }
}

/// Checks the tasks. The threads of jobs with arrivals start and end them, so the workload needs
/// such jobs.
fn check_busy(workload: &Workload) -> Result<(), SpecError> {
    let has_arrivals = workload.job.iter().any(|job| job.arrivals.is_some());
    match workload.busy.first() {
        Some(busy) if !has_arrivals => Err(SpecError(format!(
            "busy {}: needs a job with arrivals, whose latency it disturbs",
            busy.name
        ))),
        _ => Ok(()),
    }
}
