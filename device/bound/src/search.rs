// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which knobs meet all deadlines and leave the background most. Called by `steady tune --bound`.
//!
//! A bound does not only grow with `block_us`: what is above a task may block it for longer, but
//! cuts the task's own requests into fewer pieces. So values are tried, not bisected.

use std::collections::BTreeSet;

use crate::BoundError;
use crate::analysis::responses;
use crate::declared::declarations;
use crate::device::Device;
use crate::share::loss;
use crate::tasks::TaskSet;

/// Values of `split_kib` and of `block_us`; these per decade from 0.1 to 100 ms.
const SPLIT_KIB: [u64; 13] = [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];
const BLOCK_US: [u64; 12] = [100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820];
const DECADES: u32 = 3;
/// How often each task's value is tried again after the others have changed.
const ROUNDS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is cut.
    Whole,
    /// `split_kib` cuts all background.
    Split,
    /// Tasks are declared, each with its own `block_us`.
    Declared,
}

/// The best of a mode.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub mode: Mode,
    pub set: TaskSet,
    /// Tasks that may miss their deadline.
    pub missed: usize,
    /// The part of the background's throughput that it costs, estimated.
    pub loss: f64,
}

impl Candidate {
    fn of(device: &Device, mode: Mode, set: TaskSet) -> Option<Candidate> {
        set.check().ok()?;
        device.check(&set).ok()?;
        let loss = loss(device, &set)?.all;
        let found = responses(device, &set);
        if mode == Mode::Declared {
            declarations(device, &set, &found).ok()?;
        }
        let misses =
            set.tasks.iter().zip(found).filter(|(task, found)| !found.meets(task.deadline_us()));
        Some(Candidate { mode, missed: misses.count(), set, loss })
    }

    fn is_better(&self, other: &Candidate) -> bool {
        self.missed.cmp(&other.missed).then(self.loss.total_cmp(&other.loss)).is_lt()
    }
}

/// The best of each mode that the device and the set allow. A mode in which none meets all
/// deadlines has the one that misses fewest. `tick` is called for each set that is tried.
pub fn candidates(
    device: &Device,
    set: &TaskSet,
    tick: &mut dyn FnMut(),
) -> Result<Vec<Candidate>, BoundError> {
    if set.background.is_none() {
        return Err(BoundError(format!("{}: has no [background] that knobs could cut", set.name)));
    }
    if loss(device, set).is_none() {
        let name = &device.name;
        return Err(BoundError(format!("{name}: has no usual times of the background's requests")));
    }
    let split = SPLIT_KIB.iter().map(|kib| with_split(set, *kib));
    let modes = [
        Candidate::of(device, Mode::Whole, with_split(set, 0)),
        best(split.filter_map(|set| Candidate::of(device, Mode::Split, set))),
        declared(device, set, tick),
    ];
    Ok(modes.into_iter().flatten().collect())
}

/// The candidate that meets all deadlines and leaves the background most.
pub fn pick(candidates: &[Candidate]) -> Option<&Candidate> {
    let holding = candidates.iter().filter(|candidate| candidate.missed == 0);
    holding.min_by(|a, b| a.loss.total_cmp(&b.loss))
}

fn best(all: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    all.reduce(|best, next| if next.is_better(&best) { next } else { best })
}

fn with_split(set: &TaskSet, split_kib: u64) -> TaskSet {
    let mut set = set.clone();
    set.k2.split_kib = Some(split_kib);
    set.k2.rt_block_us = 0;
    set.tasks.iter_mut().for_each(|task| task.block_us = None);
    set
}

/// The values of `block_us` up to a deadline, the longest first: of values that cost the same, the
/// background gets the largest pieces.
fn values_us(deadline_us: u64) -> impl Iterator<Item = u64> {
    let all = (0..DECADES).flat_map(|decade| BLOCK_US.map(|us| us * 10_u64.pow(decade)));
    all.rev().filter(move |us| *us <= deadline_us)
}

/// Whether a service has several tasks. `steady apply` lets a service declare one.
fn has_shared_service(set: &TaskSet) -> bool {
    let services: Vec<&String> =
        set.tasks.iter().filter_map(|task| task.service.as_ref()).collect();
    services.iter().collect::<BTreeSet<_>>().len() < services.len()
}

/// The best with declared tasks: first one value for all, and then each task's own while that is
/// better. `None`: the device or the set does not allow it. Called by `steady apply`, too.
pub fn declared(device: &Device, set: &TaskSet, tick: &mut dyn FnMut()) -> Option<Candidate> {
    if !device.has_writes() || has_shared_service(set) {
        return None;
    }
    let mut of = |set: TaskSet| {
        tick();
        Candidate::of(device, Mode::Declared, set)
    };
    let uncut = with_split(set, 0);
    let for_all = |us: u64| {
        let mut set = uncut.clone();
        set.k2.rt_block_us = us;
        let declared = set.tasks.iter_mut().filter(|task| !task.lane);
        declared.for_each(|task| task.block_us = Some(us));
        set
    };
    let deadline_us = set.declared().map(|(_, task)| task.deadline_us()).max()?;
    let mut chosen = best(values_us(deadline_us).filter_map(|us| of(for_all(us))))?;
    for _ in 0..ROUNDS_MAX {
        let before = chosen.clone();
        for (index, task) in set.declared() {
            let with = |us: u64| {
                let mut set = chosen.set.clone();
                set.tasks[index].block_us = Some(us);
                set
            };
            let values_us = values_us(task.deadline_us());
            let found = best(values_us.filter_map(|us| of(with(us))));
            chosen = found.filter(|found| found.is_better(&chosen)).unwrap_or(chosen);
        }
        if !chosen.is_better(&before) {
            break;
        }
    }
    Some(chosen)
}
