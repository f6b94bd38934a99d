// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that submits operations through io_uring, and its workers. What a worker does may end elsewhere, after the
//! worker has gone on to another operation.

use std::collections::BTreeMap;

use steadyio_trace::event::{Call, EventKind};

use super::{CallTruth, Sim};

/// Who submits.
const SUBMITTER: u32 = 10;
/// Who works for it.
pub(super) const WORKERS: [u32; 2] = [21, 22];
pub(super) const WORKER_NAME: &str = "iou-wrk-10";

/// Whether there is a ring, and what its workers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    Absent,
    /// Each operation that a worker begins with.
    AllBegins,
    /// Some of them.
    SomeBegins,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) kind: Ring,
    operations: Vec<Operation>,
    /// Ended, not fetched yet: which calls.
    ended: Vec<usize>,
    entered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    call: usize,
    request: u64,
    place: OperationState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationState {
    /// For a worker.
    Queue,
    With {
        worker: u32,
        /// Bios to come.
        todo: u32,
        /// The worker waits for the end.
        waits: bool,
    },
    /// All is queued; the submitter ends it.
    Ending,
}

impl State {
    pub(super) fn new(kind: Ring) -> State {
        State { kind, operations: Vec::new(), ended: Vec::new(), entered: false }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.ended.is_empty() && !self.entered
    }
}

impl Sim {
    /// The program and its workers are started.
    pub(super) fn start_ring(&mut self) {
        self.emit(0, 99, EventKind::Fork { child: SUBMITTER, same_process: false });
        for worker in WORKERS {
            self.emit(0, SUBMITTER, EventKind::Fork { child: worker, same_process: false });
        }
    }

    pub(super) fn step_ring(&mut self, begin: bool) {
        match self.below(3) {
            0 => self.step_submitter(begin),
            nth => self.step_worker(WORKERS[nth as usize - 1]),
        }
    }

    fn step_submitter(&mut self, begin: bool) {
        let (cpu, call) = (self.cpu(), Call::IoUringEnter);
        let ending = |operation: &Operation, calls: &[CallTruth]| {
            operation.place == OperationState::Ending && calls[operation.call].open == 0
        };
        if !self.ring.entered {
            if begin || !self.ring.is_idle() {
                self.emit(cpu, SUBMITTER, EventKind::CallEnter { call, fd: None });
                self.ring.entered = true;
            }
        } else if let Some(nth) =
            self.ring.operations.iter().position(|operation| ending(operation, &self.calls))
        {
            self.end_operation(nth, cpu, SUBMITTER);
        } else if begin && self.ring.operations.len() < 6 && !self.one_in(3) {
            self.submit_operation(cpu);
        } else {
            let exited_ns = self.emit(cpu, SUBMITTER, EventKind::CallExit { call, result: 1 });
            for call in std::mem::take(&mut self.ring.ended) {
                self.calls[call].exited_ns = Some(exited_ns);
            }
            self.ring.entered = false;
        }
    }

    fn submit_operation(&mut self, cpu: u32) {
        let used =
            |request: &u64| self.ring.operations.iter().any(|other| other.request == *request);
        let request = (1..).find(|request| !used(request)).unwrap();
        let submit = EventKind::UringSubmit { request, sq_thread: false, operation: None };
        let entered_ns = self.emit(cpu, SUBMITTER, submit);
        self.calls.push(CallTruth {
            call: Call::IoUringEnter,
            pid: SUBMITTER,
            entered_ns,
            exited_ns: None,
            requests: BTreeMap::new(),
            open: 0,
        });
        let call = self.calls.len() - 1;
        let mut place = OperationState::Queue;
        if self.one_in(3) {
            place = OperationState::Ending;
            for _ in 0..self.below(3) {
                self.submit(cpu, SUBMITTER, Some(call));
            }
            self.unplug(cpu, SUBMITTER);
        } else {
            self.emit(cpu, SUBMITTER, EventKind::UringQueueWork { request });
        }
        self.ring.operations.push(Operation { call, request, place });
    }

    fn step_worker(&mut self, worker: u32) {
        let cpu = self.cpu();
        let of = |operation: &Operation| matches!(operation.place, OperationState::With { worker: by, .. } if by == worker);
        let Some(nth) = self.ring.operations.iter().position(of) else {
            return self.begin_operation(cpu, worker);
        };
        let Operation { call, place, .. } = self.ring.operations[nth];
        let OperationState::With { todo, waits, .. } = place else { return };
        if todo > 0 {
            self.submit(cpu, worker, Some(call));
            self.ring.operations[nth].place =
                OperationState::With { worker, todo: todo - 1, waits };
            return;
        }
        self.unplug(cpu, worker);
        if !waits {
            self.ring.operations[nth].place = OperationState::Ending;
        } else if self.calls[call].open == 0 {
            self.end_operation(nth, cpu, worker);
        }
    }

    fn begin_operation(&mut self, cpu: u32, worker: u32) {
        let queued: Vec<usize> = (0..self.ring.operations.len())
            .filter(|nth| self.ring.operations[*nth].place == OperationState::Queue)
            .collect();
        let nth = self.below(queued.len().max(1) as u64) as usize;
        let Some(&nth) = queued.get(nth) else { return };
        let request = self.ring.operations[nth].request;
        if self.ring.kind == Ring::AllBegins || self.one_in(2) {
            self.emit(cpu, worker, EventKind::UringFileGet { request });
        }
        let (todo, waits) = (self.below(4) as u32, self.one_in(2));
        self.ring.operations[nth].place = OperationState::With { worker, todo, waits };
    }

    fn end_operation(&mut self, nth: usize, cpu: u32, thread: u32) {
        let Operation { call, request, .. } = self.ring.operations.remove(nth);
        self.emit(cpu, thread, EventKind::UringComplete { request, result: 4096 });
        self.ring.ended.push(call);
    }
}
