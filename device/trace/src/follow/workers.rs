// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker threads of io_uring: which operation each bio of theirs is for.
//!
//! Events show which operations a worker may execute, and which one completes there, but not always which one a worker
//! starts. So a bio has candidates, and later events rule them out: an operation that another worker starts or
//! completes was never with this one. If one candidate is left, the bio belongs to it; if two that have completed are,
//! it is unknown, and none of them is reported. `calls` asks here.

use std::collections::HashMap;

use super::super::event::{Call, Comm, Event};
use super::drafts::Handover;
use super::results::Results;
use super::tasks::{Key, Task, Tasks};

/// With more candidates a bio's operation is not looked for.
const CANDIDATES_MAX: usize = 256;

/// Stands for operations from before the trace.
const BEFORE: Key = 0;

/// How often an operation was queued to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// The submitting thread does it itself.
    Never,
    Once,
    /// So more than one worker may have done a part of it.
    Again,
}

/// The workers of one submitting thread.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Operations that any worker may start.
    waiting: Vec<Key>,
    workers: HashMap<u32, Worker>,
    groups: Vec<Group>,
}

#[derive(Debug, Default)]
struct Worker {
    /// The start or completion of an operation was seen, so its present one started in the trace.
    known: bool,
    /// It was seen to start this one, which has not completed.
    current: Option<Key>,
    /// It queued a bio for which no known operation is a candidate.
    astray: bool,
}

/// Bios of one worker that may be of several operations.
#[derive(Debug)]
struct Group {
    worker: u32,
    /// The I/O that stands for them until their operation is known.
    key: Key,
    candidates: Vec<Key>,
    /// Candidates that have completed and can no longer be ruled out.
    ended: Vec<Key>,
    /// It can never be decided.
    lost: bool,
    /// Since then the worker started or completed an operation.
    over: bool,
}

/// The submitter of a worker, by the worker's name; `None` if it is no worker.
pub(super) fn submitter_of(comm: &Comm) -> Option<u32> {
    std::str::from_utf8(comm.as_bytes().strip_prefix(b"iou-wrk-")?).ok()?.parse().ok()
}

impl Pool {
    /// A worker may start it from now on.
    pub fn hand_over(&mut self, key: Key) {
        if !self.waiting.contains(&key) {
            self.waiting.push(key);
        }
    }

    /// This worker starts `key`, or one from before the trace. So no other worker has.
    pub fn begin(
        &mut self,
        worker: u32,
        key: Option<Key>,
        tasks: &mut Tasks,
        results: &mut Results,
    ) {
        let current = Some(key.unwrap_or(BEFORE));
        self.workers.insert(worker, Worker { known: true, current, astray: false });
        if let Some(key) = key {
            self.waiting.retain(|waiting| *waiting != key);
            self.rule_out(key, |_| true, tasks, results);
        }
        self.pass(worker);
    }

    /// What a bio is for that this worker queues now. `born`: it was started within the trace.
    pub fn task_of(&mut self, event: &Event, born: bool, tasks: &mut Tasks) -> Task {
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
                tasks.join(key);
                return Task::Io(key);
            }
            _ if candidates.len() > CANDIDATES_MAX => {
                candidates.into_iter().for_each(|key| tasks.spoil(Task::Io(key)));
            }
            _ => return Task::Io(self.group(event, candidates, tasks)),
        }
        Task::None
    }

    fn group(&mut self, event: &Event, candidates: Vec<Key>, tasks: &mut Tasks) -> Key {
        let same = |group: &&Group| {
            let open = !group.lost && !group.over;
            group.worker == event.pid && open && group.candidates == candidates
        };
        if let Some(group) = self.groups.iter().rev().find(same) {
            return group.key;
        }
        let who = (event.pid, event.comm);
        let key = tasks.begin_io(Call::IoUringEnter, who, event.time_ns, Handover::Reap);
        tasks.stand_in(key, &candidates);
        let ended = candidates.iter().copied().filter(|key| *key == BEFORE).collect();
        self.groups.push(Group {
            worker: event.pid,
            key,
            candidates,
            ended,
            lost: false,
            over: false,
        });
        key
    }

    /// It has completed, in `worker` if any. If it was queued to workers `Once`, that one did all of it, after what it
    /// started or completed before.
    pub fn end(
        &mut self,
        (key, handed): (Key, Handed),
        worker: Option<u32>,
        tasks: &mut Tasks,
        results: &mut Results,
    ) {
        self.waiting.retain(|waiting| *waiting != key);
        for other in self.workers.values_mut().filter(|other| other.current == Some(key)) {
            other.current = None;
        }
        if let Some(worker) = worker {
            let state = self.workers.entry(worker).or_default();
            if state.astray && handed == Handed::Never {
                tasks.spoil(Task::Io(key));
            }
            *state = Worker { known: true, ..Worker::default() };
            if handed == Handed::Once {
                let elsewhere = |group: &Group| group.worker != worker || group.over;
                self.rule_out(key, elsewhere, tasks, results);
            }
            self.pass(worker);
        }
        for group in self.groups.iter_mut().filter(|group| group.candidates.contains(&key)) {
            group.ended.push(key);
        }
        self.settle(tasks, results);
    }

    /// An operation from before the trace has completed, which any worker may have done; the one that completed it
    /// continues with another.
    pub fn end_older(&mut self, worker: Option<u32>, tasks: &mut Tasks, results: &mut Results) {
        if let Some(worker) = worker {
            self.workers.insert(worker, Worker { known: true, ..Worker::default() });
            self.pass(worker);
        }
        for group in self.groups.iter_mut().filter(|group| !group.candidates.contains(&BEFORE)) {
            group.candidates.push(BEFORE);
            group.ended.push(BEFORE);
        }
        self.settle(tasks, results);
    }

    /// The worker continues with another operation.
    fn pass(&mut self, worker: u32) {
        let of_worker = |group: &&mut Group| group.worker == worker;
        self.groups.iter_mut().filter(of_worker).for_each(|group| group.over = true);
    }

    /// Whether this thread is known to be one of the workers.
    pub fn has(&self, thread: u32) -> bool {
        self.workers.contains_key(&thread)
    }

    /// Those groups are not of this operation.
    fn rule_out(
        &mut self,
        key: Key,
        of: impl Fn(&Group) -> bool,
        tasks: &mut Tasks,
        results: &mut Results,
    ) {
        for group in self.groups.iter_mut().filter(|group| of(group)) {
            let before = group.candidates.len();
            group.candidates.retain(|candidate| *candidate != key);
            if group.candidates.len() < before {
                tasks.rule_out(key, results);
            }
        }
        self.settle(tasks, results);
    }

    /// Groups that no later event can change.
    fn settle(&mut self, tasks: &mut Tasks, results: &mut Results) {
        for group in &mut self.groups {
            if group.lost || group.ended.len() > 1 {
                group.lost = true;
                for key in group.ended.drain(..) {
                    group.candidates.retain(|candidate| *candidate != key);
                    tasks.spoil(Task::Io(key));
                    tasks.rule_out(key, results);
                }
            }
        }
        self.groups.retain(|group| match group.candidates[..] {
            [] | [BEFORE] => {
                tasks.forget_io(group.key);
                false
            }
            [key] if !group.lost => {
                tasks.bequeath(group.key, key, results);
                false
            }
            _ => true,
        });
    }
}
