// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker threads of io_uring: which operation each bio of theirs is for.
//!
//! Events show which operations a worker may execute, and which one completes there, but not always
//! which one a worker starts. Therefore a bio has candidates, and later events rule them out: an
//! operation that another worker starts or completes was never with this one. If one candidate is
//! left, the bio belongs to it. If two that have completed are left, the operation is unknown, and
//! none of them is reported.
//!
//! This file changes no I/O: each event returns its findings, and [`super::uring`] applies them.

use std::collections::HashMap;

use crate::follow::sink::Key;

/// With more candidates a bio's operation is not looked for.
const CANDIDATES_MAX: usize = 256;

/// Stands for operations from before the trace.
const BEFORE: Key = 0;

/// The workers of one submitting thread.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Operations that any worker may start.
    waiting: Vec<Key>,
    pub workers: HashMap<u32, Worker>,
    placeholders: Vec<Placeholder>,
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    /// The start or completion of an operation was seen, so its present one started in the trace.
    known: bool,
    /// It was seen to start this one, which has not completed.
    current: Option<Key>,
    /// It queued a bio for which no known operation is a candidate.
    astray: bool,
}

/// What a bio is for that a worker queues.
#[derive(Debug)]
pub(super) enum Whose {
    Operation(Key),
    /// The same as the bios of this placeholder.
    Placeholder(Key),
    OneOf(Vec<Key>),
    /// It is not looked for; if there are any, it may be one of these.
    Lost(Vec<Key>),
}

/// What an event tells.
#[derive(Debug)]
pub(super) enum Finding {
    Owner {
        placeholder: Key,
        owner: Key,
    },
    /// The placeholder is of no operation of the trace.
    Nobody(Key),
    /// A placeholder is not of this operation, or nothing of the operation is reported.
    NotOf(Key),
    /// A bio of this operation is not known.
    Lost(Key),
}

/// Bios of one worker that may be of several operations.
#[derive(Debug)]
struct Placeholder {
    worker: u32,
    /// The I/O that stands for them until its owner, their operation, is known.
    key: Key,
    candidates: Vec<Key>,
    /// Candidates that have completed and can no longer be ruled out.
    ended: Vec<Key>,
    /// It can never be decided.
    lost: bool,
    /// Since then the worker started or completed an operation.
    over: bool,
}

/// Whose the bios of a placeholder are.
#[derive(PartialEq)]
enum Verdict {
    Owner(Key),
    Nobody,
    /// Events to come may rule candidates out.
    Ambiguous,
    /// Several candidates have completed.
    Lost,
}

impl Placeholder {
    fn verdict(&self) -> Verdict {
        match self.candidates[..] {
            [] | [BEFORE] => Verdict::Nobody,
            _ if self.lost || self.ended.len() > 1 => Verdict::Lost,
            [owner] => Verdict::Owner(owner),
            _ => Verdict::Ambiguous,
        }
    }

    /// No operation that has completed can be its owner any more.
    fn lose(&mut self) -> Vec<Key> {
        self.lost = true;
        let ended = std::mem::take(&mut self.ended);
        self.candidates.retain(|candidate| !ended.contains(candidate));
        ended
    }
}

impl Pool {
    /// A worker may start it from now on.
    pub fn hand_over(&mut self, key: Key) {
        if !self.waiting.contains(&key) {
            self.waiting.push(key);
        }
    }

    /// This worker starts `key`, or an operation from before the trace. No other worker has started
    /// it.
    pub fn begin(&mut self, worker: u32, key: Option<Key>) -> Vec<Finding> {
        let current = Some(key.unwrap_or(BEFORE));
        self.workers.insert(worker, Worker { known: true, current, astray: false });
        self.waiting.retain(|waiting| Some(*waiting) != key);
        let mut found = key.map(|key| self.rule_out(key, |_| true)).unwrap_or_default();
        self.pass(worker);
        found.extend(self.solve());
        found
    }

    /// What a bio is for that this worker queues now. `born`: it was started within the trace.
    pub fn whose(&mut self, number: u32, born: bool) -> Whose {
        let worker = self.workers.entry(number).or_default();
        worker.known |= born;
        let unknown = (!worker.known).then_some(BEFORE);
        let mut candidates: Vec<Key> = unknown.into_iter().chain(worker.current).collect();
        let others = self.waiting.iter().filter(|key| Some(**key) != worker.current);
        candidates.extend(others.copied());
        match candidates[..] {
            [] | [BEFORE] => {
                worker.astray |= candidates.is_empty();
                Whose::Lost(Vec::new())
            }
            [key] => Whose::Operation(key),
            _ if candidates.len() > CANDIDATES_MAX => Whose::Lost(candidates),
            _ => {
                let same = |one: &&Placeholder| {
                    let open = !one.lost && !one.over;
                    one.worker == number && open && one.candidates == candidates
                };
                let known = self.placeholders.iter().rev().find(same);
                known.map_or(Whose::OneOf(candidates), |one| Whose::Placeholder(one.key))
            }
        }
    }

    /// `key` stands for a bio of this worker that is of one of `candidates`.
    pub fn stand_in(&mut self, worker: u32, key: Key, candidates: Vec<Key>) {
        let ended = candidates.iter().copied().filter(|key| *key == BEFORE).collect();
        let (lost, over) = (false, false);
        self.placeholders.push(Placeholder { worker, key, candidates, ended, lost, over });
    }

    /// It has completed, in `worker` if any. If it was handed over once, that one did all of it, after what it started or
    /// completed before; if more often, others may have done a part.
    pub fn end(&mut self, (key, handed): (Key, u32), worker: Option<u32>) -> Vec<Finding> {
        let mut found = Vec::new();
        self.waiting.retain(|waiting| *waiting != key);
        for other in self.workers.values_mut() {
            other.current.take_if(|current| *current == key);
        }
        if let Some(worker) = worker {
            let known = Worker { known: true, ..Worker::default() };
            let before = self.workers.insert(worker, known).unwrap_or_default();
            found.extend((before.astray && handed == 0).then_some(Finding::Lost(key)));
            if handed == 1 {
                found.extend(self.rule_out(key, |one| one.worker != worker || one.over));
            }
            self.pass(worker);
        }
        let may_be = |one: &&mut Placeholder| one.candidates.contains(&key);
        self.placeholders.iter_mut().filter(may_be).for_each(|one| one.ended.push(key));
        found.extend(self.solve());
        found
    }

    /// An operation from before the trace has completed, which any worker may have done; the one that completed it
    /// continues with another.
    pub fn end_older(&mut self, worker: Option<u32>) -> Vec<Finding> {
        if let Some(worker) = worker {
            self.workers.insert(worker, Worker { known: true, ..Worker::default() });
            self.pass(worker);
        }
        let is_new = |one: &&mut Placeholder| !one.candidates.contains(&BEFORE);
        for placeholder in self.placeholders.iter_mut().filter(is_new) {
            placeholder.candidates.push(BEFORE);
            placeholder.ended.push(BEFORE);
        }
        self.solve()
    }

    /// The worker continues with another operation.
    fn pass(&mut self, worker: u32) {
        for placeholder in &mut self.placeholders {
            placeholder.over |= placeholder.worker == worker;
        }
    }

    /// Those placeholders are not of this operation.
    fn rule_out(&mut self, key: Key, of: impl Fn(&Placeholder) -> bool) -> Vec<Finding> {
        let has = |one: &&mut Placeholder| one.candidates.contains(&key) && of(one);
        let without = self.placeholders.iter_mut().filter(has).map(|one| {
            one.candidates.retain(|candidate| *candidate != key);
            Finding::NotOf(key)
        });
        without.collect()
    }

    /// Decides each placeholder as far as it can be; keeps those that a later event can change.
    fn solve(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.placeholders.retain_mut(|one| {
            if one.verdict() == Verdict::Lost {
                let lost = one.lose().into_iter();
                found.extend(lost.flat_map(|key| [Finding::Lost(key), Finding::NotOf(key)]));
            }
            let placeholder = one.key;
            found.extend(match one.verdict() {
                Verdict::Owner(owner) => Some(Finding::Owner { placeholder, owner }),
                Verdict::Nobody => Some(Finding::Nobody(placeholder)),
                Verdict::Ambiguous | Verdict::Lost => return true,
            });
            false
        });
        found
    }
}
