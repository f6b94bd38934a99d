// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which operation of io_uring the requests of its worker threads are for.

use steadyio_trace::event::{Call, EventKind};
use steadyio_trace::io::{Origin, Trace};

use crate::events::{Script, extent};

/// Thread 1 submits; its workers are 20 and up. Each step is a moment.
struct Ring {
    script: Script,
    now_ns: u64,
}

impl Ring {
    /// The program was started in the trace, and is in a call for ever after.
    fn new() -> Ring {
        let mut ring = Ring { script: Script::new(), now_ns: 0 };
        ring.script.by(99).what(EventKind::Fork { child: 1, same_process: false });
        ring.by(1, |script| script.enter(Call::IoUringEnter));
        ring
    }

    /// It hands these over, and then has these workers.
    fn with(requests: &[u64], workers: &[u32]) -> Ring {
        let mut ring = Ring::new();
        ring.queue(requests);
        workers.iter().for_each(|&worker| ring.start(worker));
        ring
    }

    /// Hands over the first of a chain of two.
    fn with_chain() -> Ring {
        let mut ring = Ring::new();
        for request in [7, 8] {
            ring.by(1, |script| {
                script.what(EventKind::UringSubmit { request, sq_thread: false, operation: None })
            });
        }
        ring.by(1, |script| script.what(EventKind::UringLink { request: 8, after: 7 }));
        ring
    }

    fn by(&mut self, pid: u32, what: impl FnOnce(&mut Script) -> &mut Script) -> u64 {
        self.now_ns += 10;
        let script = self.script.at(self.now_ns);
        what(if pid < 20 { script.by(pid) } else { script.named(pid, "iou-wrk-1") });
        self.now_ns
    }

    /// Submits these and hands them over.
    fn queue(&mut self, requests: &[u64]) {
        for &request in requests {
            self.by(1, |script| {
                script.what(EventKind::UringSubmit { request, sq_thread: false, operation: None })
            });
            self.by(1, |script| script.what(EventKind::UringQueueWork { request }));
        }
    }

    fn start(&mut self, worker: u32) {
        self.by(1, |script| script.what(EventKind::Fork { child: worker, same_process: false }));
    }

    fn begin(&mut self, worker: u32, request: u64) {
        self.by(worker, |script| script.what(EventKind::UringFileGet { request }));
    }

    /// One request of a worker, from bio to end.
    fn serve(&mut self, worker: u32, sector: u64) {
        self.issue(worker, sector);
        self.complete(sector);
    }

    fn issue(&mut self, worker: u32, sector: u64) {
        let place = extent("W", sector, 8);
        self.by(worker, |script| script.block('Q', place).block('G', place).block('D', place));
    }

    fn complete(&mut self, sector: u64) {
        self.by(0, |script| script.block('C', extent("W", sector, 8)));
    }

    fn end(&mut self, thread: u32, request: u64) -> u64 {
        self.by(thread, |script| script.what(EventKind::UringComplete { request, result: 4096 }))
    }

    fn follow(mut self) -> Trace {
        self.by(1, |script| script.exit(Call::IoUringEnter, 0));
        self.script.follow()
    }
}

/// The first sectors of each I/O's requests.
fn sectors(trace: &Trace) -> Vec<Vec<u64>> {
    let of = |index: &usize| trace.requests[*index].sector;
    trace.ios.iter().map(|io| io.requests.iter().map(of).collect()).collect()
}

#[test]
fn the_only_operation_that_a_worker_can_have_is_the_one_it_serves() {
    let mut ring = Ring::with(&[7], &[20]);
    ring.serve(20, 8);
    ring.serve(20, 64);
    ring.end(1, 7);
    let trace = ring.follow();
    assert_eq!(sectors(&trace), [[8, 64]]);
    assert_eq!((trace.ios[0].pid, trace.ios[0].entered_ns), (1, 20), "from the submission");
    assert_eq!(trace.requests[0].origin, Origin::Io(0));
}

#[test]
fn an_operation_that_another_worker_begins_with_later_is_not_meant() {
    let mut ring = Ring::with(&[7, 8], &[20, 21]);
    ring.begin(20, 7);
    ring.serve(20, 8);
    ring.begin(21, 8);
    ring.serve(21, 64);
    ring.end(1, 7);
    ring.end(1, 8);
    assert_eq!(sectors(&ring.follow()), [[8], [64]]);
}

#[test]
fn an_operation_that_another_worker_ends_is_not_meant() {
    let mut ring = Ring::with(&[7, 8], &[20, 21]);
    ring.serve(20, 8);
    ring.serve(21, 64);
    ring.end(20, 7);
    ring.end(21, 8);
    assert_eq!(sectors(&ring.follow()), [[8], [64]]);
}

#[test]
fn an_operation_that_the_same_worker_ends_later_is_not_meant() {
    let mut ring = Ring::with(&[7, 8], &[20]);
    ring.serve(20, 8);
    ring.end(20, 7);
    ring.serve(20, 64);
    ring.end(20, 8);
    assert_eq!(sectors(&ring.follow()), [[8], [64]]);
}

#[test]
fn two_operations_that_can_both_be_meant_are_left_out() {
    let mut ring = Ring::with(&[7, 8], &[20]);
    ring.serve(20, 8);
    ring.serve(20, 64);
    ring.end(1, 7);
    ring.end(1, 8);
    let trace = ring.follow();
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 2));
    assert_eq!(trace.requests[0].origin, Origin::Thread);
}

/// A direct write ends elsewhere, after the worker went on: its request is not the fsync's.
#[test]
fn what_a_worker_did_before_an_operation_is_not_given_to_it() {
    let mut ring = Ring::with(&[7], &[20]);
    ring.serve(20, 8);
    ring.queue(&[8]);
    ring.serve(20, 64);
    ring.end(20, 8);
    ring.end(1, 7);
    let trace = ring.follow();
    assert_eq!((sectors(&trace), trace.account.ios_incomplete), (vec![], 2));
}

#[test]
fn an_operation_handed_over_twice_may_be_of_several_workers() {
    let mut ring = Ring::with(&[7], &[20, 21]);
    ring.serve(20, 8);
    ring.by(1, |script| script.what(EventKind::UringQueueWork { request: 7 }));
    ring.serve(21, 64);
    ring.end(21, 7);
    assert_eq!(sectors(&ring.follow()), [[8, 64]]);
}

#[test]
fn the_worker_of_a_chain_goes_on_with_the_next() {
    let mut ring = Ring::with_chain();
    ring.by(1, |script| script.what(EventKind::UringQueueWork { request: 7 }));
    ring.start(20);
    ring.begin(20, 7);
    ring.serve(20, 8);
    ring.end(20, 7);
    ring.begin(20, 8);
    ring.serve(20, 64);
    ring.end(20, 8);
    assert_eq!(sectors(&ring.follow()), [[8], [64]]);
}

#[test]
fn the_thread_itself_begins_a_chain_with_its_first() {
    let mut ring = Ring::with_chain();
    ring.serve(1, 8);
    ring.end(1, 7);
    ring.end(1, 8);
    let trace = ring.follow();
    assert_eq!((sectors(&trace), trace.ios[0].entered_ns), (vec![vec![8]], 20));
}

#[test]
fn what_a_worker_began_before_the_trace_is_nobodys() {
    let mut ring = Ring::new();
    ring.queue(&[7]);
    ring.serve(20, 8);
    ring.start(21);
    ring.serve(21, 64);
    ring.end(21, 7);
    let trace = ring.follow();
    assert_eq!((sectors(&trace), trace.account.ios_incomplete), (vec![vec![64]], 0));
}

/// The program ran before the trace, so its workers may have served operations from before the
/// trace.
#[test]
fn an_end_of_something_older_takes_back_what_workers_were_seen_to_do() {
    let follow = |older: bool| {
        let mut ring = Ring::with(&[7], &[20]);
        ring.script.events.remove(0);
        ring.serve(20, 8);
        ring.end(1, 7);
        if older {
            ring.end(1, 6);
        }
        ring.follow()
    };
    assert_eq!(sectors(&follow(false)), [[8]]);
    let trace = follow(true);
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
}

#[test]
fn without_the_events_of_handing_over_nothing_is_said_of_what_workers_end() {
    let mut ring = Ring::new();
    ring.by(1, |script| {
        script.what(EventKind::UringSubmit { request: 7, sq_thread: false, operation: None })
    });
    ring.start(20);
    ring.serve(20, 8);
    ring.end(20, 7);
    let trace = ring.follow();
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
    let missing: Vec<&str> = trace.missing.iter().map(|missing| missing.event).collect();
    assert!(missing.contains(&"io_uring:io_uring_queue_async_work"), "{missing:?}");
}

/// A bio that is in flight when its operation becomes known.
#[test]
fn a_request_that_outlasts_the_ambiguity_is_the_operations() {
    let mut ring = Ring::new();
    ring.queue(&[7, 8]);
    ring.start(20);
    ring.start(21);
    ring.issue(20, 8);
    ring.begin(21, 8);
    ring.complete(8);
    ring.end(21, 8);
    ring.end(1, 7);
    let trace = ring.follow();
    assert_eq!((sectors(&trace), trace.account.calls_without_request), (vec![vec![8]], 1));
}

/// It was one of two operations, and then known to be of this one; but something older comes between.
#[test]
fn an_end_of_something_older_takes_back_what_is_still_under_way() {
    let follow = |older: bool| {
        let mut ring = Ring::new();
        ring.script.events.remove(0);
        ring.queue(&[7, 8]);
        ring.start(20);
        ring.start(21);
        ring.issue(20, 8);
        ring.begin(21, 8);
        if older {
            ring.end(1, 6);
        }
        ring.complete(8);
        ring.end(21, 8);
        ring.end(1, 7);
        ring.follow()
    };
    assert_eq!(sectors(&follow(false)), [[8]]);
    let trace = follow(true);
    assert_eq!((trace.ios.len(), trace.account.ios_incomplete), (0, 1));
}
