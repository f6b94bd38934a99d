// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the single change that shortens a task's bound most. `steady bound` prints it.

use crate::analysis::{Response, responses};
use crate::device::Device;
use crate::tasks::TaskSet;

/// A change, and the task's bound with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The change, in the words of the file.
    pub what: String,
    pub bound_ns: u64,
}

/// The best change for each task; None: no known change helps.
pub fn changes(device: &Device, set: &TaskSet, now: &[Response]) -> Vec<Option<Change>> {
    let of_all: Vec<(String, Vec<Response>)> = for_all(set)
        .into_iter()
        .map(|(what, changed)| (what, responses(device, &changed)))
        .collect();
    (0..set.tasks.len())
        .map(|index| {
            let bound_ns = |found: &[Response]| found[index].job.map(|terms| terms.sum());
            let mut best: Option<Change> = None;
            let mut offer = |what: String, found: &[Response]| {
                let Some(new_ns) = bound_ns(found) else { return };
                let limit_ns = best.as_ref().map(|best| best.bound_ns).or(bound_ns(now));
                if limit_ns.is_none_or(|limit_ns| new_ns < limit_ns) {
                    best = Some(Change { what, bound_ns: new_ns });
                }
            };
            for (what, found) in &of_all {
                offer(what.clone(), found);
            }
            let higher = higher_level(set, index).filter(|(_, set)| device.check(set).is_ok());
            if let Some((what, changed)) = higher {
                offer(what, &responses(device, &changed));
            }
            best
        })
        .collect()
}

/// Changes of knobs.
fn for_all(set: &TaskSet) -> Vec<(String, TaskSet)> {
    let mut found = Vec::new();
    let mut offer = |name: &str, value: u64, change: fn(&mut TaskSet, u64)| {
        let mut changed = set.clone();
        change(&mut changed, value);
        if changed.check().is_ok() {
            found.push((format!("{name} = {value}"), changed));
        }
    };
    if set.k2.inflight_max > 1 {
        offer("inflight_max", 1, |set, value| set.k2.inflight_max = value);
    }
    if set.background.is_some() {
        let now_kib = match set.k2.split_kib() {
            0 => set.k2.max_sectors_kb,
            kib => kib,
        };
        if now_kib > 4 {
            let half_kib = (now_kib / 2).next_power_of_two().min(now_kib - 1).max(4);
            offer("split_kib", half_kib, |set, value| set.k2.split_kib = Some(value));
        }
    }
    if set.tasks.iter().any(|task| task.kib * 2 > set.k2.max_sectors_kb) {
        let half_kib = (set.k2.max_sectors_kb / 2).max(4);
        offer("max_sectors_kb", half_kib, |set, value| set.k2.max_sectors_kb = value);
    }
    if set.k2.background_wait_ms_max > 0 {
        offer("background_wait_ms_max", 0, |set, value| set.k2.background_wait_ms_max = value);
    }
    found
}

/// The task, one level up.
fn higher_level(set: &TaskSet, index: usize) -> Option<(String, TaskSet)> {
    let level = set.tasks[index].level.checked_sub(1)?;
    let mut changed = set.clone();
    changed.tasks[index].level = level;
    Some((format!("level = {level}"), changed))
}
