// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses fio's result (`--output-format=json+`, 3.33 and newer), as far as a bench needs it.
//! `process` calls it.

use std::collections::BTreeMap;

use serde::Deserialize;
use steadyio_core::histogram::Histogram;

/// fio's output does not have the format of its version.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file has no JSON.
    #[error("fio wrote no result; its output: {0}")]
    Missing(String),
    /// The JSON has another structure.
    #[error("fio's result cannot be read")]
    Json(#[from] serde_json::Error),
    /// A bin is not a number.
    #[error("fio's result for job {job}: latency bin \"{bin}\" is not a whole number of ns")]
    Bin {
        /// fio's name of the job.
        job: String,
        /// The text in fio's output.
        bin: String,
    },
}

#[derive(Deserialize)]
struct Report {
    jobs: Vec<RawJob>,
}

#[derive(Deserialize)]
struct RawJob {
    jobname: String,
    error: i32,
    #[serde(default)]
    total_err: u64,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    io_bytes: u64,
    /// The time in ms.
    runtime: u64,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    min: u64,
    max: u64,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// The result of one job, for reads and writes of all its processes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobOutput {
    /// Completed I/Os.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// The number of failed I/Os.
    pub errors: u64,
    /// The errno that ended the job early, or 0.
    pub fatal: i32,
    /// The time from first issue to last completion in ns. fio reports it in ms.
    pub duration_ns: u64,
    /// The latency, from the time at which fio begins an I/O to its completion.
    pub latency: Histogram,
}

impl JobOutput {
    /// Adds what another process of the same job did.
    fn add(&mut self, other: &JobOutput) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.fatal = if self.fatal == 0 { other.fatal } else { self.fatal };
        self.duration_ns = self.duration_ns.max(other.duration_ns);
        self.latency.merge(&other.latency);
    }
}

/// Parses fio's output file into results by job name. fio reports each process of a job by itself,
/// under the same name.
pub fn parse(text: &str) -> Result<BTreeMap<String, JobOutput>, OutputError> {
    // fio writes its messages into the same file, before and after the result.
    let start =
        if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|newline| newline + 1) };
    let json = start.map(|start| &text[start..]);
    let json = json.ok_or_else(|| OutputError::Missing(text.trim().to_string()))?;
    let mut reports = serde_json::Deserializer::from_str(json).into_iter::<Report>();
    let report = reports.next().ok_or_else(|| OutputError::Missing(String::new()))??;
    let mut outputs: BTreeMap<String, JobOutput> = BTreeMap::new();
    for job in report.jobs {
        outputs.entry(job.jobname.clone()).or_default().add(&job_output(job)?);
    }
    Ok(outputs)
}

fn job_output(job: RawJob) -> Result<JobOutput, OutputError> {
    let mut output = JobOutput { errors: job.total_err, fatal: job.error, ..JobOutput::default() };
    for direction in [&job.read, &job.write] {
        output.bytes += direction.io_bytes;
        output.duration_ns = output.duration_ns.max(direction.runtime * 1_000_000);
        output.latency.merge(&histogram(&job.jobname, &direction.lat_ns)?);
    }
    // fio's own count (total_ios) includes failed I/Os.
    output.count = output.latency.count();
    Ok(output)
}

fn histogram(job: &str, latency: &Latency) -> Result<Histogram, OutputError> {
    let bad = |bin: &str| OutputError::Bin { job: job.to_string(), bin: bin.to_string() };
    let bins: Result<Vec<(u64, u64)>, OutputError> = latency
        .bins
        .iter()
        .map(|(bin, &count)| Ok((bin.parse().map_err(|_| bad(bin))?, count)))
        .collect();
    Ok(Histogram::new(bins?, latency.min, latency.max))
}
