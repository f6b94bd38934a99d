// SPDX-License-Identifier: MIT OR Apache-2.0
//! From fio's numbers to the record's: what a job completes after its point's end does not count.

use std::collections::BTreeMap;

use steadyio_bench::fio::output::JobOutput;
use steadyio_bench::record::point::point_result;
use steadyio_bench::spec::expand::{PlannedPoint, Selection, Setting, Spec};
use steadyio_core::histogram::Histogram;

const MIB: u64 = 1 << 20;

fn planned(settings: &[&str]) -> PlannedPoint {
    let text = std::fs::read_to_string("../../experiments/workloads/s1-fig5.toml").unwrap();
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let plan = Spec::parse_with(&text, &settings).unwrap().plan(&Selection::default()).unwrap();
    plan[0].groups[0].points.last().unwrap().clone()
}

/// A job's output: I/Os of 1 ms each.
fn output(count: u64, bytes: u64, duration_ns: u64) -> JobOutput {
    let latency = Histogram::new(vec![(1_000_000, count)], 1_000_000, 1_000_000);
    JobOutput { count, bytes, duration_ns, latency, ..JobOutput::default() }
}

fn rates(settings: &[&str], bg: JobOutput) -> (f64, f64) {
    let point = planned(settings);
    let outputs = [output(4_000, 250 * MIB, 2_000_000_000), bg];
    let jobs: Vec<_> = point.jobs.iter().zip(outputs).collect();
    let result = point_result("k2", &point, BTreeMap::new(), BTreeMap::new(), &jobs);
    assert_eq!(result.classes["bg"].count, jobs[1].1.count, "latencies keep all I/Os");
    let mib_s = |class| result.classes[class].mib_s.unwrap();
    (mib_s("bg"), mib_s("total"))
}

#[test]
fn what_is_outstanding_at_the_end_is_no_throughput() {
    // 42 I/Os of 512 KiB, 32 of them after the end: 5 MiB in 2 s.
    let bg = output(42, 21 * MIB, 2_500_000_000);
    assert_eq!(rates(&["bg.depth=32"], bg), (2.5, 127.5));
    // Fewer than are outstanding: nothing was done in time.
    assert_eq!(rates(&["bg.depth=32"], output(20, 10 * MIB, 2_500_000_000)), (0.0, 125.0));
}

#[test]
fn each_process_has_an_io_outstanding_at_the_end() {
    let mut point = planned(&[]);
    point.jobs[1].processes = 32;
    let outputs = [output(4_000, 250 * MIB, 2_000_000_000), output(42, 21 * MIB, 2_500_000_000)];
    let jobs: Vec<_> = point.jobs.iter().zip(outputs).collect();
    let result = point_result("k2", &point, BTreeMap::new(), BTreeMap::new(), &jobs);
    assert_eq!(result.classes["bg"].mib_s, Some(2.5));
}

#[test]
fn each_job_is_in_the_result_if_it_is_asked_for() {
    let mut point = planned(&[]);
    let outputs = [output(4_000, 250 * MIB, 2_000_000_000), output(42, 21 * MIB, 2_100_000_000)];
    let jobs: Vec<_> = point.jobs.clone().into_iter().zip(outputs).collect();
    let jobs: Vec<_> = jobs.iter().map(|(job, output)| (job, output.clone())).collect();
    let result = |point: &PlannedPoint| {
        point_result("k2", point, BTreeMap::new(), BTreeMap::new(), &jobs).jobs
    };
    assert!(result(&point).is_none());
    point.each_job = true;
    let counts: Vec<(String, u64)> =
        result(&point).unwrap().into_iter().map(|(name, job)| (name, job.count)).collect();
    assert_eq!(counts, [("bg".into(), 42), ("rt".into(), 4_000)]);
}

#[test]
fn one_outstanding_counts_with_its_time() {
    assert_eq!(rates(&[], output(42, 21 * MIB, 2_100_000_000)), (10.0, 135.0));
    assert_eq!(rates(&[], output(0, 0, 0)), (0.0, 125.0));
}
