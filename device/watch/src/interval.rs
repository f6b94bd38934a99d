// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the events between two samples of a disk. `watch` calls it.
//!
//! A counter that is lower than before has restarted at 0, so all of it is new. Prometheus does the
//! same.

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_core::blocked::Blocked;
use steadyio_core::histogram::Histogram;

use crate::declared::{ARMED, Task};
use crate::k2::{CLASSES, Counts, K2, Latency};
use crate::sample::Sample;
use crate::stat::Requests;

/// The completed requests of one class or real-time level. Latencies are upper bounds of buckets,
/// at most 25 % apart; None if nothing completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassInterval {
    pub class: &'static str,
    pub count: u64,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// The requests that took longer than the level's deadline.
    pub late: u64,
    /// The deadline; None if there is none.
    pub deadline_ns: Option<u64>,
}

/// The waits of real-time for background.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockedInterval {
    /// The number of all waits.
    pub count: u64,
    /// The number of waits longer than `rt_block_us`.
    pub over: u64,
    pub unguarded: u64,
    pub sum_ns: Option<u64>,
    /// The longest wait since k2 was selected.
    pub max_ns: u64,
}

/// A declared task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredInterval {
    pub level: u64,
    pub pid: u64,
    pub state: String,
    /// Faults by name; only those that occurred.
    pub faults: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperationInterval {
    pub count: u64,
    pub mean_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskInterval {
    pub reads: OperationInterval,
    pub writes: OperationInterval,
    /// The requests in flight at the end.
    pub in_flight: u64,
    /// The share of the time in which the disk had requests.
    pub busy_ratio: f64,
    /// The classes with requests; None without k2.
    pub classes: Option<Vec<ClassInterval>>,
    pub blocked: Option<BlockedInterval>,
    /// The tasks that broke their declaration or its bound in the interval, or are not armed.
    pub declared: Vec<DeclaredInterval>,
    /// Whether k2's counters restarted.
    #[serde(skip)]
    pub is_restarted: bool,
}

const NS_PER_MS: u64 = 1_000_000;

fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl DiskInterval {
    /// `before` is None if the disk appeared since.
    pub fn between(before: Option<&Sample>, now: &Sample, interval_ns: u64) -> DiskInterval {
        let stat = before.map(|sample| sample.stat).unwrap_or_default();
        let operation = |now: Requests, before: Requests| {
            let count = grown(now.count, before.count);
            let sum_ns = grown(now.sum_ms, before.sum_ms) * NS_PER_MS;
            OperationInterval { count, mean_ns: sum_ns.checked_div(count) }
        };
        let busy_ns = grown(now.stat.busy_ms, stat.busy_ms) * NS_PER_MS;
        // A k2 selected since then counts from 0.
        let k2_before = before.and_then(|sample| sample.k2.as_ref());
        let is_restarted =
            now.k2.as_ref().zip(k2_before).is_some_and(|(now, before)| restarted(now, before));
        // A task's counts outlive k2's.
        let tasks_before = k2_before.map_or(&[][..], |k2| &k2.declared[..]);
        let k2_before = k2_before.filter(|_| !is_restarted);
        DiskInterval {
            reads: operation(now.stat.reads, stat.reads),
            writes: operation(now.stat.writes, stat.writes),
            in_flight: now.stat.in_flight,
            busy_ratio: (busy_ns as f64 / interval_ns.max(1) as f64).min(1.0),
            classes: now.k2.as_ref().and_then(|k2| classes(k2, k2_before)),
            blocked: now.k2.as_ref().and_then(|k2| {
                Some(waits(k2.blocked.as_ref()?, k2_before.and_then(|k2| k2.blocked.as_ref())))
            }),
            declared: now.k2.as_ref().map_or(vec![], |now| declared(now, tasks_before)),
            is_restarted,
        }
    }
}

/// Whether k2 was selected again. All its counters reset together, so a lower one shows it.
fn restarted(now: &K2, before: &K2) -> bool {
    let latencies = |k2: &K2| k2.latency.clone().unwrap_or_default();
    let events = |k2: &K2| -> Vec<u64> {
        k2.counts.iter().flat_map(|half: &Counts| half.events.iter().map(|(_, n)| *n)).collect()
    };
    let lower = |now: u64, before: u64| now < before;
    let waits = |k2: &K2| k2.blocked.as_ref().map_or(0, |blocked| blocked.count);
    latencies(now)
        .iter()
        .zip(&latencies(before))
        .any(|(now, before)| lower(now.count, before.count))
        || events(now).into_iter().zip(events(before)).any(|(now, before)| lower(now, before))
        || lower(waits(now), waits(before))
}

fn classes(now: &K2, before: Option<&K2>) -> Option<Vec<ClassInterval>> {
    let empty = Latency::default();
    let of_before = |index| before.and_then(|k2| k2.latency.as_ref()?.get(index)).unwrap_or(&empty);
    let class = |(index, latency): (usize, &Latency)| {
        let deadline_us = now.deadline_us.get(index).copied().filter(|us| *us > 0);
        class_between(CLASSES[index], of_before(index), latency, deadline_us)
    };
    let all = now.latency.as_ref()?.iter().enumerate().map(class);
    Some(all.filter(|class| class.count > 0 || class.late > 0).collect())
}

fn class_between(
    class: &'static str,
    before: &Latency,
    now: &Latency,
    deadline_us: Option<u64>,
) -> ClassInterval {
    let of_before = |bound: u64| {
        before.buckets.iter().find(|bucket| bucket.0 == bound).map_or(0, |bucket| bucket.1)
    };
    let bins = now.buckets.iter().map(|&(bound, count)| (bound, grown(count, of_before(bound))));
    // No request took longer than the longest since k2 was selected.
    let histogram = Histogram::new(bins, 0, now.max_ns);
    ClassInterval {
        class,
        count: grown(now.count, before.count),
        p50_ns: histogram.quantile(50, 100),
        p99_ns: histogram.quantile(99, 100),
        max_ns: histogram.quantile(1, 1),
        late: grown(now.late, before.late),
        deadline_ns: deadline_us.map(|us| us * 1_000),
    }
}

fn declared(now: &K2, before: &[Task]) -> Vec<DeclaredInterval> {
    let of_task = |task: &Task| {
        let same = before.iter().find(|one| (one.level, one.pid) == (task.level, task.pid));
        // Under another scheduler the task was not visible, so its new faults are unknown.
        let same = same.or((task.fault("interrupted") > 0).then_some(task));
        let of_before = |name: &str| same.map_or(0, |task| task.fault(name));
        let new = task.faults.iter().map(|(name, count)| (name, grown(*count, of_before(name))));
        DeclaredInterval {
            level: task.level,
            pid: task.pid,
            state: task.state.clone(),
            faults: new.filter(|(_, n)| *n > 0).map(|(name, n)| (name.clone(), n)).collect(),
        }
    };
    let all = now.declared.iter().map(of_task);
    all.filter(|task| task.state != ARMED || !task.faults.is_empty()).collect()
}

fn waits(now: &Blocked, before: Option<&Blocked>) -> BlockedInterval {
    let before = before.copied().unwrap_or_default();
    BlockedInterval {
        count: grown(now.count, before.count),
        over: grown(now.over, before.over),
        unguarded: grown(now.unguarded, before.unguarded),
        sum_ns: now.sum_ns.map(|sum_ns| grown(sum_ns, before.sum_ns.unwrap_or(0))),
        max_ns: now.max_ns.max(now.unguarded_max_ns),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::k2::INFINITY_NS;
    use crate::stat::Stat;

    const SECOND_NS: u64 = 1_000_000_000;

    fn sample(rt0: Latency) -> Sample {
        let mut latency = vec![Latency::default(); CLASSES.len()];
        latency[0] = rt0;
        let k2 = K2 { latency: Some(latency), deadline_us: vec![5_000], ..K2::default() };
        Sample { scheduler: "k2".into(), stat: Stat::default(), k2: Some(k2), faults: vec![] }
    }

    fn latency(buckets: &[(u64, u64)], max_ns: u64) -> Latency {
        let count = buckets.iter().map(|bucket| bucket.1).sum();
        Latency { count, max_ns, buckets: buckets.into(), ..Latency::default() }
    }

    fn rt0(before: Option<&Sample>, now: &Sample) -> ClassInterval {
        DiskInterval::between(before, now, SECOND_NS).classes.unwrap().remove(0)
    }

    #[test]
    fn only_what_completed_in_the_interval_counts() {
        let before = sample(latency(&[(4096, 50), (8192, 1)], 8000));
        let now = sample(latency(&[(4096, 149), (8192, 1), (10_240, 1)], 9_500));
        let class = rt0(Some(&before), &now);
        assert_eq!((class.count, class.p50_ns, class.p99_ns), (100, Some(4096), Some(4096)));
        assert_eq!(class.max_ns, Some(9_500), "nothing ever took longer");
        assert_eq!(class.deadline_ns, Some(5_000_000));
    }

    #[test]
    fn above_all_bounds_the_longest_is_what_is_known() {
        let class = rt0(None, &sample(latency(&[(INFINITY_NS, 1)], 90_000_000_000)));
        assert_eq!(class.p50_ns, Some(90_000_000_000));
    }

    #[test]
    fn counters_that_began_again_are_all_new() {
        let before = sample(latency(&[(4096, 10)], 4000));
        let now = sample(latency(&[(4096, 3)], 4000));
        let interval = DiskInterval::between(Some(&before), &now, SECOND_NS);
        assert!(interval.is_restarted);
        assert_eq!(interval.classes.unwrap()[0].count, 3);
    }

    #[test]
    fn one_lower_counter_tells_that_all_began_again() {
        let with_waits = |count, rt0| {
            let mut sample = sample(rt0);
            let blocked = Blocked { count, ..Blocked::default() };
            sample.k2.as_mut().unwrap().blocked = Some(blocked);
            sample
        };
        let before = with_waits(7, latency(&[(4096, 10)], 4000));
        let now = with_waits(2, latency(&[(4096, 12)], 4000));
        let interval = DiskInterval::between(Some(&before), &now, SECOND_NS);
        assert_eq!((interval.classes.unwrap()[0].count, interval.blocked.unwrap().count), (12, 2));
    }

    #[test]
    fn k2_chosen_since_the_last_look_counts_from_zero() {
        let mut before = sample(Latency::default());
        (before.scheduler, before.k2) = ("none".into(), None);
        let interval =
            DiskInterval::between(Some(&before), &sample(latency(&[(4096, 3)], 1)), SECOND_NS);
        assert!(!interval.is_restarted);
        assert_eq!(interval.classes.unwrap()[0].count, 3);
    }

    #[test]
    fn a_declared_task_is_shown_once_it_broke_something() {
        let with_late = |late, state: &str| {
            let faults = vec![("late".into(), late), ("over_k2".into(), 4)];
            let task = Task { level: 2, pid: 7, faults, state: state.into(), ..Task::default() };
            let mut sample = sample(Latency::default());
            sample.k2.as_mut().unwrap().declared = vec![task];
            sample
        };
        let between = |before: &Sample, now: &Sample| {
            DiskInterval::between(Some(before), now, SECOND_NS).declared
        };
        let before = with_late(3, ARMED);
        assert_eq!(between(&before, &with_late(3, ARMED)), []);
        let later = between(&before, &with_late(5, ARMED)).remove(0);
        assert_eq!((later.level, later.pid), (2, 7));
        assert_eq!(later.faults, BTreeMap::from([("late".into(), 2)]));
        let mut interrupted = with_late(3, ARMED);
        interrupted.k2.as_mut().unwrap().declared[0].faults[1] = ("interrupted".into(), 1);
        assert_eq!(between(&sample(Latency::default()), &interrupted), []);
        let unarmed = between(&before, &with_late(3, "no-limits")).remove(0);
        assert_eq!((unarmed.state.as_str(), unarmed.faults.len()), ("no-limits", 0));
    }

    #[test]
    fn without_k2_there_are_counts_and_means() {
        let of = |count, sum_ms, busy_ms| {
            let reads = Requests { count, sum_ms };
            let stat = Stat { reads, busy_ms, ..Stat::default() };
            Sample { scheduler: "none".into(), stat, k2: None, faults: vec![] }
        };
        let interval = DiskInterval::between(Some(&of(10, 20, 5)), &of(14, 26, 255), SECOND_NS);
        assert_eq!(interval.reads, OperationInterval { count: 4, mean_ns: Some(1_500_000) });
        assert_eq!((interval.busy_ratio, interval.classes), (0.25, None));
        assert_eq!(interval.writes.mean_ns, None);
    }
}
