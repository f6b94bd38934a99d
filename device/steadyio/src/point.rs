// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the results of a point's jobs to the record's entry.

use std::collections::BTreeMap;

use crate::expand::PlannedPoint;
use crate::fio_output::JobOutput;
use crate::knobs::KnobReading;
use crate::record::{ClassResult, PointResult};
use crate::spec::{Class, Job, Value};

/// Sums the jobs up by class, and all of them in `total`.
pub fn point_result(
    variant: &str,
    point: &PlannedPoint,
    knobs: BTreeMap<String, KnobReading>,
    queue: BTreeMap<String, Value>,
    jobs: &[(&Job, JobOutput)],
) -> PointResult {
    let of_class = |class| -> Vec<(&Job, &JobOutput)> {
        jobs.iter().filter(|(job, _)| job.class == class).map(|(job, out)| (*job, out)).collect()
    };
    let (rt, bg) = (of_class(Class::Rt), of_class(Class::Bg));
    let all: Vec<_> = rt.iter().chain(&bg).copied().collect();
    let decisive = if rt.is_empty() { &bg } else { &rt };
    let duration_ns = decisive.iter().map(|(_, out)| out.duration_ns).max().unwrap_or_default();
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
        duration_ns,
        classes,
    }
}
