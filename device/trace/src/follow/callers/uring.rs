// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of io_uring, from their submission to the call that reaps them.

use std::collections::HashMap;

use super::Callers;
use super::workers::{Pool, submitter_of};
use crate::event::{Call, Event, EventKind, UringOp};
use crate::follow::ledger::{Key, Ledger, Task};
use crate::io::Io;

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

    fn pool(&mut self, submitter: u32) -> &mut Pool {
        self.pools.entry(submitter).or_default()
    }

    fn end_for_workers(&mut self, operation: Operation, worker: Option<u32>, ledger: &mut Ledger) {
        let Operation { pid, key, handed, .. } = operation;
        if handed > 0 || worker.is_some() {
            self.pool(pid).end((key, handed), worker, ledger);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    pid: u32,
    /// By the kernel's polling thread, which makes no calls that could reap anything.
    by_sq_thread: bool,
    /// The I/O that it is.
    key: Key,
    /// How often it was queued to workers; if never, the submitting thread does it itself.
    handed: u32,
    /// The first of the chain that it is in.
    head: Option<Key>,
}

impl Callers {
    pub(super) fn take_operation(&mut self, event: &Event, ledger: &mut Ledger) {
        match event.what {
            EventKind::UringSubmit { request, sq_thread, operation } => {
                self.submit(event, request, (sq_thread, operation), ledger);
            }
            EventKind::UringQueueWork { request } => self.queue_work(event, request),
            EventKind::UringLink { request, after } => self.link(event, request, after),
            EventKind::UringFileGet { request } => self.begin_operation(event, request, ledger),
            EventKind::UringComplete { request, result } => {
                self.complete_operation(event, request, result, ledger);
            }
            _ => {}
        }
    }

    /// What this thread queues until its next submission is for this operation.
    fn submit(
        &mut self,
        event: &Event,
        request: u64,
        (by_sq_thread, operation): (bool, Option<UringOp>),
        ledger: &mut Ledger,
    ) {
        let pid = event.pid;
        let io = Io::begin(Call::IoUringEnter, (pid, event.comm), event.time_ns);
        let key = ledger.begin_io(Io { operation, ..io });
        self.thread(pid).submitting = Some(key);
        let operation = Operation { pid, by_sq_thread, key, handed: 0, head: None };
        if let Some(lost) = self.uring.operations.insert(request, operation) {
            ledger.spoil(Task::Io(lost.key));
            self.uring.end_for_workers(lost, None, ledger);
            ledger.end_io(lost.key, event.time_ns);
        }
    }

    /// A worker will do it, so this thread does not.
    fn queue_work(&mut self, event: &Event, request: u64) {
        let Some(operation) = self.uring.operations.get_mut(&request) else { return };
        operation.handed += 1;
        let Operation { pid, key, .. } = *operation;
        self.uring.pool(pid).hand_over(key);
        self.thread(event.pid).submitting.take_if(|submitting| *submitting == key);
    }

    /// A chain starts with its first operation once all of it is submitted; the worker that did one continues with
    /// the next, without an event.
    fn link(&mut self, event: &Event, request: u64, after: u64) {
        let before = self.uring.operations.get(&after).copied();
        let Some(operation) = self.uring.operations.get_mut(&request) else { return };
        operation.head = before.map(|before| before.head.unwrap_or(before.key));
        operation.handed = 1;
        let Operation { pid, key, head, .. } = *operation;
        self.uring.pool(pid).hand_over(key);
        self.thread(event.pid).submitting = head;
    }

    /// Who submitted what this thread, a worker, looks up; `None` if it is not known, or no worker.
    fn submitter_for(&self, event: &Event, request: u64) -> Option<u32> {
        let operation = self.uring.operations.get(&request);
        let pid = operation.map(|operation| operation.pid).or(submitter_of(&event.comm))?;
        (pid != event.pid).then_some(pid)
    }

    pub(super) fn begins_as_worker(&self, event: &Event, request: u64) -> bool {
        self.submitter_for(event, request).is_some()
    }

    /// If this thread is not the one that submitted it, it is a worker.
    fn begin_operation(&mut self, event: &Event, request: u64, ledger: &mut Ledger) {
        let Some(pid) = self.submitter_for(event, request) else { return };
        let key = self.uring.operations.get(&request).map(|operation| operation.key);
        self.uring.pool(pid).begin(event.pid, key, ledger);
    }

    /// Who a bio is for that this thread queues now, if it is a worker.
    pub(super) fn task_of_worker(&mut self, event: &Event, ledger: &mut Ledger) -> Task {
        let Some(submitter) = submitter_of(&event.comm) else { return Task::None };
        let born = self.thread(event.pid).born;
        self.uring.pool(submitter).task_of(event, born, ledger)
    }

    /// Whether a worker completes the operation, or one from before the trace.
    pub(super) fn ends_as_worker(&self, event: &Event, request: u64) -> bool {
        let submitter = submitter_of(&event.comm);
        let Some(operation) = self.uring.operations.get(&request) else {
            let was_born = |pid: u32| self.threads.get(&pid).is_some_and(|thread| thread.born);
            return request != 0 && submitter.is_some_and(|pid| !was_born(pid));
        };
        let pid = operation.pid;
        let pool = self.uring.pools.get(&pid);
        submitter == Some(pid) || pool.is_some_and(|pool| pool.has(event.pid) && event.pid != pid)
    }

    fn complete_operation(
        &mut self,
        event: &Event,
        request: u64,
        result: i32,
        ledger: &mut Ledger,
    ) {
        let by_worker = self.ends_as_worker(event, request);
        let Some(operation) = self.uring.operations.remove(&request) else {
            // 0: an auxiliary CQE, such as of a multishot operation.
            if request != 0 {
                self.complete_older(event, ledger);
            }
            return;
        };
        let Operation { pid, key, by_sq_thread, .. } = operation;
        self.uring.end_for_workers(operation, by_worker.then_some(event.pid), ledger);
        let thread = self.thread(pid);
        thread.submitting.take_if(|submitting| *submitting == key);
        let Some(io) = ledger.io_mut(key) else { return };
        io.bytes = Some(u64::try_from(result).unwrap_or(0));
        if by_sq_thread {
            ledger.end_io(key, event.time_ns);
        } else {
            io.completed_ns = Some(event.time_ns);
            thread.unreaped.push(key);
        }
    }

    /// One that was submitted before the trace has completed. Until now a worker may have executed it.
    fn complete_older(&mut self, event: &Event, ledger: &mut Ledger) {
        let submitter = submitter_of(&event.comm);
        let pid = submitter.unwrap_or(event.pid);
        if self.thread(pid).born {
            return;
        }
        ledger.doubt_workers_of(pid);
        self.uring.pool(pid).end_older(submitter.map(|_| event.pid), ledger);
    }

    /// The program reaps what this thread submitted and has completed.
    pub(super) fn reap(&mut self, event: &Event, ledger: &mut Ledger) {
        let Some(thread) = self.threads.get_mut(&event.pid) else { return };
        let (served, open): (Vec<Key>, Vec<Key>) = std::mem::take(&mut thread.unreaped)
            .into_iter()
            .partition(|key| ledger.is_served(*key));
        thread.unreaped = open;
        served.into_iter().for_each(|key| ledger.end_io(key, event.time_ns));
    }

    /// The end of the trace: operations that no call reaped were reaped from the ring in memory, as they completed.
    pub(super) fn reap_from_memory(&mut self, ledger: &mut Ledger) {
        let threads = std::mem::take(&mut self.threads);
        for key in threads.into_values().flat_map(|thread| thread.unreaped) {
            if let Some(completed_ns) = ledger.io_mut(key).and_then(|io| io.completed_ns) {
                ledger.end_io(key, completed_ns);
            }
        }
    }
}
