// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the change that shortens a task's bound most, or those that it takes to meet the deadline.
//! `steady bound` prints it.

use std::collections::BTreeMap;

use crate::analysis::{Bounds, Response, bounds_of};
use crate::buffer::is_mostly_stalls;
use crate::device::Device;
use crate::tasks::TaskSet;

/// A change, and the task's bound with it. Other tasks that meet their deadlines still do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The change, in the words of the file, or several of them.
    pub what: String,
    pub bound_ns: u64,
    /// Whether the task meets its deadline with it.
    pub meets: bool,
}

/// A changed set, and the bounds of its tasks.
type Changed = (TaskSet, Bounds);

/// The values of all knobs.
type Knobs = [u64; 4];

/// The best change for each task, one after the other, as each takes its time. None: no known
/// change helps, as where stalls are most of a bound.
pub fn changes<'a>(
    device: &'a Device,
    set: &'a TaskSet,
    now: &'a [Response],
) -> impl Iterator<Item = Option<Change>> + 'a {
    let bounds = now.iter().map(Response::bound_ns).collect();
    let mut search = Search { device, set, now: bounds, known: BTreeMap::new() };
    now.iter().enumerate().map(move |(index, found)| {
        let is_stalled = found.job.is_some_and(|terms| is_mostly_stalls(&terms));
        (!is_stalled).then(|| search.change(index)).flatten()
    })
}

struct Search<'a> {
    device: &'a Device,
    set: &'a TaskSet,
    now: Bounds,
    /// The bounds with knobs. All tasks share them, as each takes long to compute.
    known: BTreeMap<Knobs, Bounds>,
}

impl Search<'_> {
    /// Of sets with one more knob changed.
    fn of_knobs(&mut self, from: &TaskSet) -> Vec<Changed> {
        let all: Vec<usize> = (0..from.tasks.len()).collect();
        let mut with = |set: TaskSet| {
            let bounds = || bounds_of(self.device, &set, &all);
            let found = self.known.entry(values(&set)).or_insert_with(bounds).clone();
            (set, found)
        };
        knobs(from).into_iter().map(&mut with).collect()
    }

    fn meets(&self, found: &Bounds, index: usize) -> bool {
        let deadline_ns = self.set.tasks[index].deadline_us() * 1_000;
        found[index].is_some_and(|bound_ns| bound_ns <= deadline_ns)
    }

    /// The other tasks, which meet their deadlines and must not miss them with a change.
    fn holding(&self, index: usize) -> impl Iterator<Item = usize> {
        (0..self.now.len()).filter(move |other| *other != index && self.meets(&self.now, *other))
    }

    /// The one with the shortest bound, if that is shorter than in `than`.
    fn best(&self, than: &Bounds, all: Vec<Changed>, index: usize) -> Option<Changed> {
        let bound_ns = |found: &Bounds| found[index].unwrap_or(u64::MAX);
        all.into_iter()
            .filter(|(_, found)| bound_ns(found) < bound_ns(than))
            .filter(|(_, found)| self.holding(index).all(|other| self.meets(found, other)))
            .min_by_key(|(_, found)| bound_ns(found))
    }

    /// Only the bounds that [`Search::best`] uses are known.
    fn at_level(&self, from: &TaskSet, index: usize, level: u64) -> Option<Changed> {
        let mut set = from.clone();
        set.tasks[index].level = level;
        set.check().ok()?;
        self.device.check(&set).ok()?;
        let wanted: Vec<usize> = self.holding(index).chain([index]).collect();
        let found = bounds_of(self.device, &set, &wanted);
        Some((set, found))
    }

    /// One change or, if none is enough, several.
    fn change(&mut self, index: usize) -> Option<Change> {
        let higher = self.set.tasks[index].level.checked_sub(1);
        let mut all = self.of_knobs(self.set);
        all.extend(higher.and_then(|level| self.at_level(self.set, index, level)));
        let mut best = self.best(&self.now, all, index)?;
        if !self.meets(&self.now, index) && !self.meets(&best.1, index) {
            let knobs = self.more((self.set.clone(), self.now.clone()), index);
            let highest = higher.and_then(|_| self.at_level(&knobs.0, index, 0));
            let all = [Some(best), Some(knobs), highest].into_iter().flatten().collect();
            best = self.best(&self.now, all, index)?;
        }
        let (set, found) = best;
        let (what, bound_ns) = (words(self.set, &set, index), found[index]?);
        Some(Change { what, bound_ns, meets: self.meets(&found, index) })
    }

    /// Changes knobs one after the other, while that helps and the deadline is missed.
    fn more(&mut self, mut last: Changed, index: usize) -> Changed {
        while !self.meets(&last.1, index) {
            let all = self.of_knobs(&last.0);
            let Some(next) = self.best(&last.1, all, index) else { break };
            last = next;
        }
        last
    }
}

/// Sets with one knob changed.
fn knobs(set: &TaskSet) -> Vec<TaskSet> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut TaskSet)| {
        let mut changed = set.clone();
        change(&mut changed);
        if changed.check().is_ok() {
            found.push(changed);
        }
    };
    if set.k2.inflight_max > 1 {
        offer(&|set| set.k2.inflight_max = 1);
    }
    if set.background.is_some() {
        let now_kib = match set.k2.split_kib() {
            0 => set.k2.max_sectors_kb,
            kib => kib,
        };
        if now_kib > 4 {
            let half_kib = (now_kib / 2).next_power_of_two().min(now_kib - 1).max(4);
            offer(&|set| set.k2.split_kib = Some(half_kib));
        }
    }
    if set.tasks.iter().any(|task| task.kib * 2 > set.k2.max_sectors_kb) {
        let half_kib = (set.k2.max_sectors_kb / 2).max(4);
        offer(&|set| set.k2.max_sectors_kb = half_kib);
    }
    if set.k2.background_wait_ms_max > 0 {
        offer(&|set| set.k2.background_wait_ms_max = 0);
    }
    found
}

/// Of the knobs that are changed, with the names in the file.
const NAMES: [&str; 4] = ["inflight_max", "split_kib", "max_sectors_kb", "background_wait_ms_max"];

fn values(set: &TaskSet) -> Knobs {
    let k2 = &set.k2;
    [k2.inflight_max, k2.split_kib(), k2.max_sectors_kb, k2.background_wait_ms_max]
}

/// What differs, as the file has it.
fn words(from: &TaskSet, to: &TaskSet, index: usize) -> String {
    let level = ("level", (from.tasks[index].level, to.tasks[index].level));
    let knobs = NAMES.into_iter().zip(values(from).into_iter().zip(values(to)));
    let changed = knobs.chain([level]).filter(|(_, (old, new))| old != new);
    changed.map(|(name, (_, new))| format!("{name} = {new}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::analysis::{WINDOWS, responses};

    const TASKS: u64 = 64;
    const WINDOWS_MAX: u64 = 12_000;

    /// Tasks of all levels that miss their deadlines. Their requests differ, and those of each
    /// lower level can block.
    fn late() -> TaskSet {
        let task = |number: u64| {
            let (level, kib) = (number * 8 / TASKS, 4 + 4 * (number * 29 % 31));
            format!(
                "[[task]]\nname = \"t{number}\"\nop = \"read\"\nkib = {kib}\nlevel = {level}\n\
                 period_us = 5000000\ndeadline_us = 100\n"
            )
        };
        let tasks: String = (0..TASKS).map(task).collect();
        TaskSet::parse(&format!(
            "schema = \"steadyio.tasks/1\"\nname = \"late\"\n\
             k2 = {{ inflight_max = 1, max_sectors_kb = 256, nr_requests = 64 }}\n{tasks}"
        ))
        .unwrap()
    }

    #[test]
    fn advice_for_many_late_tasks_takes_few_windows() {
        let device = Device::parse(
            "schema = \"steadyio.device/1\"\nname = \"card\"\ncard = { capacity_mib = 256 }\n\
             read = { base_ns = 100_000, per_kib_ns = 4_000 }\n\
             write = { base_ns = 200_000, per_kib_ns = 8_000 }\n",
        )
        .unwrap();
        let set = late();
        let now = responses(&device, &set);
        assert!(now.iter().all(|found| found.job.is_some() && !found.meets(100)));
        WINDOWS.set(0);
        let found: Vec<Option<Change>> = changes(&device, &set, &now).collect();
        let windows = WINDOWS.get();
        assert!(windows < WINDOWS_MAX, "{windows} windows");
        let raised = found.iter().flatten().filter(|change| change.what == "level = 0");
        assert_eq!(raised.count() as u64, TASKS - TASKS / 8);
    }
}
