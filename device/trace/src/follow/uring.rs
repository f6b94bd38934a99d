// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of io_uring, from their submission to the call that reaps them.

use std::collections::HashMap;

use super::super::event::{Call, Event, EventKind, UringOp};
use super::Follower;
use super::drafts::Handover;
use super::tasks::{Key, Task};
use super::workers::{Handed, Pool, submitter_of};

/// Those in progress.
#[derive(Debug, Default)]
pub(super) struct Uring {
    /// By `struct io_kiocb`.
    operations: HashMap<u64, Operation>,
    /// The workers of each submitting thread.
    pools: HashMap<u32, Pool>,
}

impl Uring {
    /// Whether this thread has operations in progress.
    pub fn is_submitter(&self, pid: u32) -> bool {
        self.operations.values().any(|operation| operation.pid == pid)
    }
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    /// Who submitted it.
    pid: u32,
    /// The I/O that it is.
    key: Key,
    handed: Handed,
    /// The first of the chain that it is in.
    head: Option<Key>,
}

impl Follower {
    pub(super) fn dispatch_to_operations(&mut self, event: &Event) {
        match event.what {
            EventKind::UringSubmit { request, sq_thread, operation } => {
                self.submit(event, request, (sq_thread, operation));
            }
            EventKind::UringQueueWork { request } => self.queue_work(event, request),
            EventKind::UringLink { request, after } => self.link(event, request, after),
            EventKind::UringFileGet { request } => self.begin_operation(event, request),
            EventKind::UringComplete { request, result } => {
                self.complete_operation(event, request, result)
            }
            _ => {}
        }
    }

    /// What this thread queues until its next submission is for this operation.
    fn submit(
        &mut self,
        event: &Event,
        request: u64,
        (sq_thread, operation): (bool, Option<UringOp>),
    ) {
        self.drop_pending(event.pid);
        let who = (event.pid, event.comm);
        let call = Call::IoUringEnter;
        // The SQPOLL thread makes no calls that could reap anything.
        let handover = if sq_thread { Handover::Return } else { Handover::Reap };
        let key = self.tasks.begin_io(call, who, event.time_ns, handover);
        if let Some(draft) = self.tasks.draft_mut(key) {
            draft.operation = operation;
        }
        self.threads.entry(event.pid).or_default().submitting = Some(key);
        let operation = Operation { pid: event.pid, key, handed: Handed::Never, head: None };
        if let Some(lost) = self.uring.operations.insert(request, operation) {
            self.tasks.spoil(Task::Io(lost.key));
            self.end_for_workers(lost, None);
            self.tasks.end_io(lost.key, event.time_ns, &mut self.results);
        }
    }

    /// A worker will do it, so this thread does not.
    fn queue_work(&mut self, event: &Event, request: u64) {
        let Some(operation) = self.uring.operations.get_mut(&request) else { return };
        operation.handed = match operation.handed {
            Handed::Never => Handed::Once,
            Handed::Once | Handed::Again => Handed::Again,
        };
        let Operation { pid, key, .. } = *operation;
        self.uring.pools.entry(pid).or_default().hand_over(key);
        let thread = self.threads.entry(event.pid).or_default();
        if thread.submitting == Some(key) {
            thread.submitting = None;
        }
    }

    /// A chain starts with its first operation once all of it is submitted; the worker that did one continues with
    /// the next, without an event.
    fn link(&mut self, event: &Event, request: u64, after: u64) {
        let before = self.uring.operations.get(&after).copied();
        let Some(operation) = self.uring.operations.get_mut(&request) else { return };
        operation.head = before.map(|before| before.head.unwrap_or(before.key));
        operation.handed = Handed::Once;
        let Operation { pid, key, head, .. } = *operation;
        self.uring.pools.entry(pid).or_default().hand_over(key);
        self.threads.entry(event.pid).or_default().submitting = head;
    }

    /// If this thread is not the one that submitted it, it is a worker.
    fn begin_operation(&mut self, event: &Event, request: u64) {
        let operation = self.uring.operations.get(&request).copied();
        let by_name = submitter_of(&event.comm);
        let Some(pid) = operation.map(|operation| operation.pid).or(by_name) else { return };
        if pid == event.pid {
            return;
        }
        self.drop_pending(event.pid);
        let key = operation.map(|operation| operation.key);
        let pool = self.uring.pools.entry(pid).or_default();
        pool.begin(event.pid, key, &mut self.tasks, &mut self.results);
    }

    /// Who a bio is for that this thread queues now, if it is a worker.
    pub(super) fn task_of_worker(&mut self, event: &Event) -> Task {
        let Some(submitter) = submitter_of(&event.comm) else { return Task::None };
        let born = self.threads.entry(event.pid).or_default().born;
        self.uring.pools.entry(submitter).or_default().task_of(event, born, &mut self.tasks)
    }

    fn complete_operation(&mut self, event: &Event, request: u64, result: i32) {
        let Some(operation) = self.uring.operations.remove(&request) else {
            // 0: an auxiliary CQE, such as of a multishot operation.
            if request != 0 {
                self.complete_older(event);
            }
            return;
        };
        let Operation { pid, key, .. } = operation;
        let pool = self.uring.pools.get(&pid);
        let by_worker = submitter_of(&event.comm) == Some(pid)
            || pool.is_some_and(|pool| pool.has(event.pid) && event.pid != pid);
        if by_worker {
            self.drop_pending(event.pid);
        }
        self.end_for_workers(operation, by_worker.then_some(event.pid));
        let thread = self.threads.entry(pid).or_default();
        if thread.submitting == Some(key) {
            thread.submitting = None;
        }
        let Some(draft) = self.tasks.draft_mut(key) else { return };
        draft.bytes = Some(u64::try_from(result).unwrap_or(0));
        match draft.handover {
            Handover::Return => self.tasks.end_io(key, event.time_ns, &mut self.results),
            Handover::Reap => {
                draft.completed_ns = Some(event.time_ns);
                thread.unreaped.push(key);
            }
        }
    }

    fn end_for_workers(&mut self, operation: Operation, worker: Option<u32>) {
        let Operation { pid, key, handed, .. } = operation;
        if handed != Handed::Never || worker.is_some() {
            let pool = self.uring.pools.entry(pid).or_default();
            pool.end((key, handed), worker, &mut self.tasks, &mut self.results);
        }
    }

    /// One that was submitted before the trace has completed. Until now a worker may have executed it.
    fn complete_older(&mut self, event: &Event) {
        let submitter = submitter_of(&event.comm);
        let pid = submitter.unwrap_or(event.pid);
        if self.threads.entry(pid).or_default().born {
            return;
        }
        let worker = submitter.map(|_| event.pid);
        worker.into_iter().for_each(|worker| self.drop_pending(worker));
        self.tasks.doubt_joined(pid, &mut self.results);
        let pool = self.uring.pools.entry(pid).or_default();
        pool.end_older(worker, &mut self.tasks, &mut self.results);
    }

    /// The program reaps what this thread submitted and has completed.
    pub(super) fn reap(&mut self, event: &Event) {
        let Some(thread) = self.threads.get_mut(&event.pid) else { return };
        let tasks = &self.tasks;
        let unreaped = std::mem::take(&mut thread.unreaped);
        let (served, open): (Vec<Key>, Vec<Key>) =
            unreaped.into_iter().partition(|key| tasks.is_served(*key));
        thread.unreaped = open;
        for key in served {
            self.tasks.end_io(key, event.time_ns, &mut self.results);
        }
    }

    /// The end of the trace: operations that no call reaped were reaped from the ring in memory, as they completed.
    pub(super) fn hand_over_the_rest(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        for key in threads.into_values().flat_map(|thread| thread.unreaped) {
            let completed_ns = self.tasks.draft_mut(key).and_then(|draft| draft.completed_ns);
            if let Some(completed_ns) = completed_ns {
                self.tasks.end_io(key, completed_ns, &mut self.results);
            }
        }
    }
}
