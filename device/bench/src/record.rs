// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bench record (`docs/spec/bench-record-1.schema.json`), the result of `steady bench` and
//! `steady with`.
//!
//! It has no clock times, host names or paths: the same kernel, spec and seed give the same bytes
//! where time is virtual. Fields are written in the order of the declaration, maps in the order of
//! their keys.

pub mod point;

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_core::blocked::Blocked;
use steadyio_core::device::DeviceInfo;
use steadyio_core::histogram::{Histogram, Percentiles};
use steadyio_core::kernel::Kernel;
use steadyio_core::knobs::{KnobReading, Unmet};
use steadyio_core::value::Value;

use crate::fio::output::JobOutput;
use crate::spec::workload::Job;

/// Schema written by this version.
pub const RECORD_SCHEMA: &str = "steadyio.bench/1";

/// The result of one `steady bench`, or of the program that one `steady with` ran.
#[derive(Debug, Serialize)]
pub struct Record {
    /// Always [`RECORD_SCHEMA`].
    pub schema: &'static str,
    /// The workload file as written, or the program.
    pub spec: serde_json::Value,
    /// Seed of the workload; None for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The measuring programs.
    pub tool: Tool,
    /// The measured kernel.
    pub kernel: Kernel,
    /// The measured device.
    pub device: DeviceInfo,
    /// Optional knobs that could not be set.
    pub unmet: Vec<Unmet>,
    /// Variants in the order of the workload, points inside.
    pub results: Vec<PointResult>,
}

/// The versions of the measuring programs.
#[derive(Debug, Serialize)]
pub struct Tool {
    pub steady: &'static str,
    /// The version of fio; None if it was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<String>,
    /// The version of sysbench, if a class comes from its report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysbench: Option<String>,
}

/// One point of one variant.
#[derive(Debug, Serialize)]
pub struct PointResult {
    /// Name of the variant.
    pub variant: String,
    /// Value of the swept key; null without a sweep.
    pub point: Option<Value>,
    /// The variant's knobs.
    pub knobs: BTreeMap<String, KnobReading>,
    /// The scheduler, its attributes and the queue's limits during the run.
    pub queue: BTreeMap<String, Value>,
    /// The length of the real-time jobs, or of all jobs if there are none; None for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The time that real-time requests waited for background, as the scheduler counted it. None:
    /// it does not count, or another point ran at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// `rt`, `bg` (if there are such jobs) and `total`; for a program, the classes that it reports.
    pub classes: BTreeMap<&'static str, ClassResult>,
    /// The same per job, by name, if the workload asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<BTreeMap<String, ClassResult>>,
}

/// All jobs of one class together. None: the program does not report the value.
#[derive(Debug, Serialize)]
pub struct ClassResult {
    /// The operation; different ones are joined by `+`.
    pub op: String,
    /// The size of one I/O; null if the jobs differ.
    pub bs_kib: Option<u64>,
    /// Completed I/Os.
    pub count: u64,
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// Sum of the jobs' throughputs.
    pub mib_s: Option<f64>,
    /// The number of failed I/Os.
    pub errors: u64,
    /// Percentiles by nearest rank on the bins below; minimum and maximum are exact.
    pub latency_ns: Percentiles,
    /// The bins (value in ns, count), values rising.
    pub histogram_ns: Vec<(u64, u64)>,
}

impl ClassResult {
    /// Merges the jobs of a class, each with its throughput in MiB/s.
    pub fn of(jobs: &[(&Job, &JobOutput, f64)]) -> ClassResult {
        let mut latency = Histogram::default();
        let mut ops: Vec<&str> = Vec::new();
        for (job, output, _) in jobs {
            latency.merge(&output.latency);
            if !ops.contains(&job.op.word()) {
                ops.push(job.op.word());
            }
        }
        let first_bs = jobs.first().map(|(job, ..)| job.bs_kib);
        let same = jobs.iter().all(|(job, ..)| Some(job.bs_kib) == first_bs);
        ClassResult {
            op: ops.join("+"),
            bs_kib: first_bs.filter(|_| same),
            count: jobs.iter().map(|(_, output, _)| output.count).sum(),
            bytes: Some(jobs.iter().map(|(_, output, _)| output.bytes).sum()),
            mib_s: Some(rounded(jobs.iter().map(|(_, _, mib_s)| mib_s).sum())),
            errors: jobs.iter().map(|(_, output, _)| output.errors).sum(),
            latency_ns: latency.percentiles(),
            histogram_ns: latency.bins(),
        }
    }
}

/// Rounds. fio gives the duration in ms, so more digits have no meaning.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

impl Record {
    /// Failed I/Os of all points.
    pub fn errors(&self) -> u64 {
        self.results.iter().filter_map(|result| result.classes.get("total")).map(|c| c.errors).sum()
    }

    /// The record as one line of JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
