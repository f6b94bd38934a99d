// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker threads of io_uring: which operation each bio of theirs is for.
//!
//! Events show which operations a worker may execute, and which one completes there, but not always which one a worker
//! starts. So a bio has candidates, and later events rule them out: an operation that another worker starts or
//! completes was never with this one. If one candidate is left, the bio belongs to it; if two that have completed are,
//! it is unknown, and none of them is reported.

use std::collections::HashMap;

use crate::event::Event;
use crate::follow::sink::{Key, Sink};

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

impl Pool {
    /// A worker may start it from now on.
    pub fn hand_over(&mut self, key: Key) {
        if !self.waiting.contains(&key) {
            self.waiting.push(key);
        }
    }

    /// This worker starts `key`, or one from before the trace. So no other worker has.
    pub fn begin(&mut self, worker: u32, key: Option<Key>, sink: &mut Sink) {
        let current = Some(key.unwrap_or(BEFORE));
        self.workers.insert(worker, Worker { known: true, current, astray: false });
        if let Some(key) = key {
            self.waiting.retain(|waiting| *waiting != key);
            self.rule_out(key, |_| true, sink);
        }
        self.pass(worker);
    }

    /// What a bio is for that this worker queues now. `born`: it was started within the trace.
    pub fn task_of(&mut self, event: &Event, born: bool, sink: &mut Sink) -> Option<Key> {
        let worker = self.workers.entry(event.pid).or_default();
        worker.known |= born;
        let unknown = (!worker.known).then_some(BEFORE);
        let mut candidates: Vec<Key> = unknown.into_iter().chain(worker.current).collect();
        let others = self.waiting.iter().filter(|key| Some(**key) != worker.current);
        candidates.extend(others.copied());
        match candidates[..] {
            [] => worker.astray = true,
            [BEFORE] => {}
            [key] => {
                sink.change(key, |io| io.of_worker = true);
                return Some(key);
            }
            _ if candidates.len() > CANDIDATES_MAX => {
                candidates.into_iter().for_each(|key| sink.invalidate(Some(key)));
            }
            _ => return Some(self.placeholder(event, candidates, sink)),
        }
        None
    }

    fn placeholder(&mut self, event: &Event, candidates: Vec<Key>, sink: &mut Sink) -> Key {
        let same = |placeholder: &&Placeholder| {
            let open = !placeholder.lost && !placeholder.over;
            placeholder.worker == event.pid && open && placeholder.candidates == candidates
        };
        if let Some(placeholder) = self.placeholders.iter().rev().find(same) {
            return placeholder.key;
        }
        let who = (event.pid, event.comm);
        let key = sink.begin_placeholder(who, event.time_ns, &candidates);
        let ended = candidates.iter().copied().filter(|key| *key == BEFORE).collect();
        let (worker, lost, over) = (event.pid, false, false);
        self.placeholders.push(Placeholder { worker, key, candidates, ended, lost, over });
        key
    }

    /// It has completed, in `worker` if any. If it was handed over once, that one did all of it, after what it started or
    /// completed before; if more often, others may have done a part.
    pub fn end(&mut self, (key, handed): (Key, u32), worker: Option<u32>, sink: &mut Sink) {
        self.waiting.retain(|waiting| *waiting != key);
        for other in self.workers.values_mut().filter(|other| other.current == Some(key)) {
            other.current = None;
        }
        if let Some(worker) = worker {
            let state = self.workers.entry(worker).or_default();
            if state.astray && handed == 0 {
                sink.invalidate(Some(key));
            }
            *state = Worker { known: true, ..Worker::default() };
            if handed == 1 {
                let elsewhere =
                    |placeholder: &Placeholder| placeholder.worker != worker || placeholder.over;
                self.rule_out(key, elsewhere, sink);
            }
            self.pass(worker);
        }
        let may_be = |of: &&mut Placeholder| of.candidates.contains(&key);
        self.placeholders.iter_mut().filter(may_be).for_each(|of| of.ended.push(key));
        self.settle(sink);
    }

    /// An operation from before the trace has completed, which any worker may have done; the one that completed it
    /// continues with another.
    pub fn end_older(&mut self, worker: Option<u32>, sink: &mut Sink) {
        if let Some(worker) = worker {
            self.workers.insert(worker, Worker { known: true, ..Worker::default() });
            self.pass(worker);
        }
        let is_new = |of: &&mut Placeholder| !of.candidates.contains(&BEFORE);
        for placeholder in self.placeholders.iter_mut().filter(is_new) {
            placeholder.candidates.push(BEFORE);
            placeholder.ended.push(BEFORE);
        }
        self.settle(sink);
    }

    /// The worker continues with another operation.
    fn pass(&mut self, worker: u32) {
        for placeholder in &mut self.placeholders {
            placeholder.over |= placeholder.worker == worker;
        }
    }

    /// Those placeholders are not of this operation.
    fn rule_out(&mut self, key: Key, of: impl Fn(&Placeholder) -> bool, sink: &mut Sink) {
        for placeholder in self.placeholders.iter_mut().filter(|placeholder| of(placeholder)) {
            let before = placeholder.candidates.len();
            placeholder.candidates.retain(|candidate| *candidate != key);
            if placeholder.candidates.len() < before {
                sink.rule_out(key);
            }
        }
        self.settle(sink);
    }

    /// Placeholders that no later event can change.
    fn settle(&mut self, sink: &mut Sink) {
        for placeholder in &mut self.placeholders {
            if placeholder.lost || placeholder.ended.len() > 1 {
                placeholder.lost = true;
                for key in placeholder.ended.drain(..) {
                    placeholder.candidates.retain(|candidate| *candidate != key);
                    sink.invalidate(Some(key));
                    sink.rule_out(key);
                }
            }
        }
        self.placeholders.retain(|placeholder| match placeholder.candidates[..] {
            [] | [BEFORE] => {
                sink.ios.remove(&placeholder.key);
                false
            }
            [key] if !placeholder.lost => {
                sink.find_owner(placeholder.key, key);
                false
            }
            _ => true,
        });
    }
}
