// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of io_uring, from their submission to the call that reaps them. `callers` calls it
//! for each event of io_uring.

use super::workers::{Finding, Pool, Whose};
use super::{Caller, Callers, Operation};
use crate::event::{Call, Event, EventKind};
use crate::follow::sink::{Key, Sink};
use crate::io::Io;

impl Callers {
    pub(super) fn pool(&mut self, submitter: u32) -> &mut Pool {
        self.pools.entry(submitter).or_default()
    }

    /// The I/O to which a bio belongs that this thread, a worker, queues. `born`: the worker
    /// started within the trace.
    pub(super) fn task_of_worker(
        &mut self,
        event: &Event,
        born: bool,
        sink: &mut Sink,
    ) -> Option<Key> {
        let pool = self.pool(event.comm.uring_submitter()?);
        match pool.whose(event.pid, born) {
            Whose::Operation(key) => {
                sink.change(key, |io| io.of_worker = true);
                Some(key)
            }
            Whose::Placeholder(key) => Some(key),
            Whose::OneOf(candidates) => {
                let who = (event.pid, event.comm);
                let key = sink.begin_placeholder(who, event.time_ns, &candidates);
                pool.stand_in(event.pid, key, candidates);
                Some(key)
            }
            Whose::Lost(candidates) => {
                candidates.into_iter().for_each(|key| sink.invalidate(Some(key)));
                None
            }
        }
    }

    /// An operation has completed, in this worker if in any.
    fn end_operation(&mut self, operation: Operation, worker: Option<u32>, sink: &mut Sink) {
        let Operation { pid, key, handed, .. } = operation;
        let thread = self.thread(pid);
        thread.operations = thread.operations.saturating_sub(1);
        if handed > 0 || worker.is_some() {
            apply(self.pool(pid).end((key, handed), worker), sink);
        }
    }

    /// The thread submits an operation. The bios that it queues until the next submission belong to
    /// it.
    pub(super) fn submit(&mut self, event: &Event, sink: &mut Sink) {
        let EventKind::UringSubmit { request, sq_thread, operation } = event.what else { return };
        let pid = event.pid;
        self.close_by_ring(pid, operation);
        let io = Io::begin(Call::IoUringEnter, (pid, event.comm), event.time_ns);
        let key = sink.begin_io(Io { operation, ..io });
        let thread = self.thread(pid);
        (thread.submitting, thread.operations) = (Some(key), thread.operations + 1);
        let operation = Operation { pid, by_sq_thread: sq_thread, key, handed: 0, head: None };
        if let Some(lost) = self.operations.insert(request, operation) {
            sink.invalidate(Some(lost.key));
            self.end_operation(lost, None, sink);
            sink.end_io(lost.key, event.time_ns);
        }
    }

    /// A worker will execute the operation, so this thread does not.
    pub(super) fn queue_work(&mut self, event: &Event, request: u64) {
        let Some(operation) = self.operations.get_mut(&request) else { return };
        operation.handed += 1;
        let Operation { pid, key, .. } = *operation;
        self.pool(pid).hand_over(key);
        self.thread(event.pid).submitting.take_if(|submitting| *submitting == key);
    }

    /// Links an operation to the one before it. A chain starts with its first operation once all of
    /// it is submitted. The worker that executed one continues with the next, without an event.
    pub(super) fn link(&mut self, event: &Event, request: u64, after: u64) {
        let before = self.operations.get(&after).copied();
        let Some(operation) = self.operations.get_mut(&request) else { return };
        operation.head = before.map(|before| before.head.unwrap_or(before.key));
        operation.handed = 1;
        let Operation { pid, key, head, .. } = *operation;
        self.pool(pid).hand_over(key);
        self.thread(event.pid).submitting = head;
    }

    /// The submitter of the operation whose file this thread, a worker, looks up; `None` if
    /// unknown, or if this thread is not a worker.
    pub(super) fn submitter_for(&self, event: &Event, request: u64) -> Option<u32> {
        let operation = self.operations.get(&request);
        let pid = operation.map(|operation| operation.pid).or(event.comm.uring_submitter())?;
        (pid != event.pid).then_some(pid)
    }

    /// A thread starts an operation. It is a worker unless it submitted the operation.
    pub(super) fn begin_operation(&mut self, event: &Event, request: u64, sink: &mut Sink) {
        let Some(pid) = self.submitter_for(event, request) else { return };
        let key = self.operations.get(&request).map(|operation| operation.key);
        apply(self.pool(pid).begin(event.pid, key), sink);
    }

    /// Whether a worker completes the operation, or an operation from before the trace.
    pub(super) fn ends_as_worker(&self, event: &Event, request: u64) -> bool {
        let submitter = event.comm.uring_submitter();
        let Some(operation) = self.operations.get(&request) else {
            let was_born = |pid: u32| self.threads.get(&pid).is_some_and(|thread| thread.born);
            return request != 0 && submitter.is_some_and(|pid| !was_born(pid));
        };
        let pid = operation.pid;
        let pool = self.pools.get(&pid);
        submitter == Some(pid)
            || pool.is_some_and(|pool| pool.workers.contains_key(&event.pid) && event.pid != pid)
    }

    pub(super) fn complete_operation(&mut self, event: &Event, sink: &mut Sink) {
        let EventKind::UringComplete { request, result } = event.what else { return };
        let by_worker = self.ends_as_worker(event, request);
        let Some(operation) = self.operations.remove(&request) else {
            // 0: an auxiliary CQE, such as that of a multishot operation.
            if request != 0 {
                self.complete_older(event, sink);
            }
            return;
        };
        let Operation { pid, key, by_sq_thread, .. } = operation;
        self.end_operation(operation, by_worker.then_some(event.pid), sink);
        let thread = self.thread(pid);
        thread.submitting.take_if(|submitting| *submitting == key);
        let Some(io) = sink.ios.get_mut(&key) else { return };
        let operation = io.io.operation;
        // The result of an operation that is not known may be a number of bytes.
        io.bytes = Some(operation.unwrap_or(Call::Read).moved(result.into()));
        if by_sq_thread {
            sink.end_io(key, event.time_ns);
        } else {
            io.completed_ns = Some(event.time_ns);
            thread.unreaped.push(key);
        }
        self.close_by_ring(pid, operation);
    }

    /// An operation that closes a file names no descriptor in events.
    fn close_by_ring(&mut self, pid: u32, operation: Option<Call>) {
        if operation == Some(Call::Close) {
            self.close(pid, None);
        }
    }

    /// An operation that was submitted before the trace has completed. A worker may have executed
    /// it until now.
    fn complete_older(&mut self, event: &Event, sink: &mut Sink) {
        let submitter = event.comm.uring_submitter();
        let pid = submitter.unwrap_or(event.pid);
        if self.thread(pid).born {
            return;
        }
        sink.mark_workers_ambiguous(pid);
        apply(self.pool(pid).end_older(submitter.map(|_| event.pid)), sink);
    }

    /// The program reaps all completed operations that this thread submitted.
    pub(super) fn reap(&mut self, event: &Event, sink: &mut Sink) {
        let Some(thread) = self.threads.get_mut(&event.pid) else { return };
        let unreaped = std::mem::take(&mut thread.unreaped).into_iter();
        let served: Vec<Key>;
        (served, thread.unreaped) = unreaped.partition(|key| sink.is_served(*key));
        served.into_iter().for_each(|key| sink.end_io(key, event.time_ns));
    }

    /// Ends the operations of a thread that no call reaped. They were reaped from the ring in memory
    /// when they completed.
    pub(super) fn reap_from_memory(thread: Caller, sink: &mut Sink) {
        for key in thread.unreaped {
            if let Some(completed_ns) = sink.ios.get(&key).and_then(|io| io.completed_ns) {
                sink.end_io(key, completed_ns);
            }
        }
    }
}

fn apply(found: Vec<Finding>, sink: &mut Sink) {
    for one in found {
        match one {
            Finding::Owner { placeholder, owner } => sink.find_owner(placeholder, owner),
            Finding::Nobody(placeholder) => drop(sink.ios.remove(&placeholder)),
            Finding::NotOf(key) => sink.rule_out(key),
            Finding::Lost(key) => sink.invalidate(Some(key)),
        }
    }
}
