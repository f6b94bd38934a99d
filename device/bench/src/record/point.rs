// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the results of a point's jobs into the record's entry. `run` calls it.

use std::collections::BTreeMap;

use steadyio_core::knobs::KnobReading;
use steadyio_core::value::Value;

use crate::fio::output::JobOutput;
use crate::record::{ClassResult, PointResult};
use crate::spec::expand::PlannedPoint;
use crate::spec::workload::{Class, Job};

/// Merges the jobs by class, and all of them in `total`. The jobs are in the point's order.
pub fn point_result(
    variant: &str,
    point: &PlannedPoint,
    knobs: BTreeMap<String, KnobReading>,
    queue: BTreeMap<String, Value>,
    jobs: &[(&Job, JobOutput)],
) -> PointResult {
    let end_ns = end_ns(point, jobs);
    let with_rate: Vec<(&Job, &JobOutput, f64)> = jobs
        .iter()
        .enumerate()
        .map(|(index, (job, out))| {
            let cut_off = point.length.ios.is_none() || point.main_job() != Some(index);
            (*job, out, mib_s(job, out, cut_off.then_some(end_ns)))
        })
        .collect();
    let each = |(job, out, mib_s): &(&Job, &JobOutput, f64)| {
        (job.name.clone(), ClassResult::of(&[(*job, *out, *mib_s)]))
    };
    let jobs = point.each_job.then(|| with_rate.iter().map(each).collect());
    let of_class = |class| -> Vec<(&Job, &JobOutput, f64)> {
        with_rate.iter().filter(|(job, ..)| job.class == class).copied().collect()
    };
    let (rt, bg) = (of_class(Class::Rt), of_class(Class::Bg));
    let all: Vec<_> = rt.iter().chain(&bg).copied().collect();
    let decisive = if rt.is_empty() { &bg } else { &rt };
    let duration_ns = decisive.iter().map(|(_, out, _)| out.duration_ns).max().unwrap_or_default();
    let classes = [("rt", &rt), ("bg", &bg), ("total", &all)]
        .into_iter()
        .filter(|(_, jobs)| !jobs.is_empty())
        .map(|(name, jobs)| (name, ClassResult::of(jobs)))
        .collect();
    PointResult {
        variant: variant.to_string(),
        point: point.value.clone(),
        knobs,
        queue,
        duration_ns: Some(duration_ns),
        blocked: None,
        classes,
        jobs,
    }
}

/// The end, in ns since the start, of the jobs that do not count their I/Os.
fn end_ns(point: &PlannedPoint, jobs: &[(&Job, JobOutput)]) -> u64 {
    match point.length.seconds {
        Some(seconds) => seconds * 1_000_000_000,
        None => point.main_job().map(|index| jobs[index].1.duration_ns).unwrap_or_default(),
    }
}

/// The throughput of a job. A job that is ended at `end_ns` completes its outstanding I/Os
/// afterwards, when nothing else uses the device. With several outstanding these can be more than
/// all before, so they do not count. A job with one outstanding I/O keeps it, and the time that it
/// took.
fn mib_s(job: &Job, output: &JobOutput, end_ns: Option<u64>) -> f64 {
    let (count, duration_ns) = match end_ns {
        Some(end_ns) if job.outstanding() > 1 => {
            (output.count.saturating_sub(job.outstanding()), end_ns)
        }
        _ => (output.count, output.duration_ns),
    };
    match (output.count, duration_ns) {
        (0, _) | (_, 0) => 0.0,
        (all, _) => {
            let bytes = output.bytes as f64 * count as f64 / all as f64;
            bytes / f64::from(1 << 20) * 1e9 / duration_ns as f64
        }
    }
}
