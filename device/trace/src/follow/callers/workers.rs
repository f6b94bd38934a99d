// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the operation of each bio that a worker thread of io_uring queues. [`super::uring`] calls
//! it.
//!
//! Events show which operations a worker may execute, and which one completes there, but not always
//! which one a worker starts. Therefore a bio has candidates, and later events exclude them: an
//! operation that another worker starts or completes was never with this one. If one candidate is
//! left, the bio belongs to it. If two completed ones are left, the operation is unknown, and
//! neither is reported.
//!
//! This module changes no I/O. Each event returns findings, and [`super::uring`] applies them.

use std::collections::HashMap;

use crate::follow::sink::Key;

/// With more candidates, a bio's operation stays unknown.
const CANDIDATES_MAX: usize = 256;

/// The key of operations from before the trace.
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
    /// Whether the start or completion of an operation was seen here, so that the present operation
    /// started within the trace.
    known: bool,
    /// The operation that it was seen to start, and that has not completed.
    current: Option<Key>,
    /// Whether it queued a bio without a candidate.
    astray: bool,
}

/// The owner of a bio that a worker queues.
#[derive(Debug)]
pub(super) enum Whose {
    Operation(Key),
    /// The bio belongs to the same operation as the bios of this placeholder.
    Placeholder(Key),
    OneOf(Vec<Key>),
    /// The owner stays unknown. It may be one of these operations.
    Lost(Vec<Key>),
}

/// A conclusion from an event.
#[derive(Debug)]
pub(super) enum Finding {
    Owner {
        placeholder: Key,
        owner: Key,
    },
    /// The placeholder belongs to no operation of the trace.
    Nobody(Key),
    /// The placeholder does not belong to this operation, or nothing of the operation is reported.
    NotOf(Key),
    /// A bio of this operation is unknown.
    Lost(Key),
}

/// Bios of one worker that may belong to several operations.
#[derive(Debug)]
struct Placeholder {
    worker: u32,
    /// The I/O that represents these bios until their operation is known.
    key: Key,
    candidates: Vec<Key>,
    /// The candidates that have completed and can no longer be excluded.
    ended: Vec<Key>,
    /// Whether the owner can never be decided.
    lost: bool,
    /// Whether the worker has since started or completed an operation.
    over: bool,
}

/// The decision about a placeholder's owner.
#[derive(PartialEq)]
enum Verdict {
    Owner(Key),
    Nobody,
    /// Later events may exclude candidates.
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

    /// Gives up the placeholder: no completed operation can be its owner any more.
    fn lose(&mut self) -> Vec<Key> {
        self.lost = true;
        let ended = std::mem::take(&mut self.ended);
        self.candidates.retain(|candidate| !ended.contains(candidate));
        ended
    }
}

impl Pool {
    /// Records that any worker may start the operation from now on.
    pub fn hand_over(&mut self, key: Key) {
        if !self.waiting.contains(&key) {
            self.waiting.push(key);
        }
    }

    /// Records that this worker starts `key`, or an operation from before the trace. No other
    /// worker has started it.
    pub fn begin(&mut self, worker: u32, key: Option<Key>) -> Vec<Finding> {
        let current = Some(key.unwrap_or(BEFORE));
        self.workers.insert(worker, Worker { known: true, current, astray: false });
        self.waiting.retain(|waiting| Some(*waiting) != key);
        let mut found = key.map(|key| self.rule_out(key, |_| true)).unwrap_or_default();
        self.pass(worker);
        found.extend(self.solve());
        found
    }

    /// The owner of a bio that this worker queues now. `born`: the worker started within the trace.
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

    /// Makes `key` the placeholder for a bio of this worker that belongs to one of `candidates`.
    pub fn stand_in(&mut self, worker: u32, key: Key, candidates: Vec<Key>) {
        let ended = candidates.iter().copied().filter(|key| *key == BEFORE).collect();
        let (lost, over) = (false, false);
        self.placeholders.push(Placeholder { worker, key, candidates, ended, lost, over });
    }

    /// Records that an operation has completed, in `worker` if any. If it was handed over once,
    /// that worker did all of it, after its previous start or completion. If more often, others may
    /// have done a part.
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

    /// Records that an operation from before the trace has completed. Any worker may have done it,
    /// and the one that completed it continues with another.
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

    /// Records that the worker continues with another operation.
    fn pass(&mut self, worker: u32) {
        for placeholder in &mut self.placeholders {
            placeholder.over |= placeholder.worker == worker;
        }
    }

    /// Excludes this operation from the matching placeholders.
    fn rule_out(&mut self, key: Key, of: impl Fn(&Placeholder) -> bool) -> Vec<Finding> {
        let has = |one: &&mut Placeholder| one.candidates.contains(&key) && of(one);
        let without = self.placeholders.iter_mut().filter(has).map(|one| {
            one.candidates.retain(|candidate| *candidate != key);
            Finding::NotOf(key)
        });
        without.collect()
    }

    /// Decides all placeholders that can be decided; keeps those that a later event can change.
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
