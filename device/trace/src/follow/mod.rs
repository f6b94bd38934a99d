// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to I/Os: [`Follower`] takes each event once, in time order, and finds the request and the I/O that it
//! belongs to.
//!
//! Block events do not name a request, only its device and sector. So the path of each bio through the block layer is
//! replayed: `threads` holds a thread's bios until they have a request (`bios`), `table` the requests (`open`) until
//! they complete, `requests` has one function per block event, `doubt` says which request it is about, if that is
//! certain. `flush` pairs flushes with the requests that wait for them, `hardware` the drivers' commands with
//! requests. `calls` knows the system call, `uring` the io_uring operation, `workers` which operation a worker does
//! (`tasks`: I/Os and journal commits in progress; `judge`: what they asked for and waited for), `spans` where an
//! I/O's time went, `results` what is certain so far, `seen` which events are missing.
//!
//! Never guessed: if an event can be about two requests, both are counted as unmatched. The rules,
//! for users, are in docs/reference/trace-rules.md.

mod bios;
mod calls;
mod doubt;
mod drafts;
mod flush;
mod hardware;
mod judge;
mod open;
mod requests;
mod results;
mod seen;
mod spans;
mod table;
mod tasks;
mod threads;
mod uring;
mod workers;

use std::collections::HashMap;

use doubt::Blur;
use flush::Flushes;
use hardware::Hardware;
use open::Doubt;
use results::Results;
use seen::Seen;
use table::Table;
use tasks::Tasks;
use threads::Threads;
use uring::Uring;

use super::event::{Dev, Event, EventKind, Op};
use super::io::{DirtyPause, LockWait, Trace};
use super::sched::{Sched, SchedEvent, SchedWhat};

/// No completion of a request takes longer: what is woken later has another reason.
const COMPLETION_NS_MAX: u64 = 1_000_000;

/// What to follow.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only requests of this device, and the I/Os that led to them; all if `None`.
    pub dev: Option<Dev>,
    /// Sched events, if any, are of all threads.
    pub sched_of_all: bool,
}

/// Takes events, gives a [`Trace`].
#[derive(Debug, Default)]
pub struct Follower {
    options: Options,
    threads: Threads,
    table: Table,
    flushes: Flushes,
    hardware: Hardware,
    tasks: Tasks,
    uring: Uring,
    results: Results,
    /// The last event of each CPU, in ns: where a loss on that CPU begins.
    last_ns: HashMap<u32, u64>,
    seen: Seen,
    /// The last request of which only issue and completion were seen: if a rest is requeued, this was a piece. With
    /// its state then, and its result.
    last_bare: Option<((Dev, u64, Op), usize)>,
    /// All of those, with the reason why no more was seen.
    bare: Vec<(usize, Doubt)>,
    /// Sectors of ambiguous requests.
    blurred: Vec<Blur>,
    /// Devices with `block_getrq`: each request there should have one.
    giving: Vec<Dev>,
    sched: Sched,
    /// What each CPU completed last, if nothing else was seen there since: when, and in the context of which thread.
    completing: HashMap<u32, (u64, u32)>,
    dirty_pauses: Vec<DirtyPause>,
    lock_waits: Vec<LockWait>,
}

impl Follower {
    pub fn new(options: Options) -> Follower {
        let mut sched = Sched::default();
        if options.sched_of_all {
            sched.note_all();
        }
        Follower { options, sched, ..Follower::default() }
    }

    /// The next event, in time order.
    pub fn take(&mut self, event: &Event) {
        self.results.account.events += 1;
        self.seen.note(event);
        self.settle_flushes(event);
        self.dispatch(event);
        self.note_completion(event);
        self.last_ns.insert(event.cpu, event.time_ns);
    }

    /// The end of the trace: what is still open is at its edge.
    pub fn finish(mut self) -> Trace {
        self.settle_all_flushes();
        self.end_all_faults();
        self.hand_over_the_rest();
        self.tasks.abandon_all(&mut self.results);
        self.doubt_bare();
        let table = std::mem::take(&mut self.table);
        for open in table.drain() {
            let last_ns = open.last_ns();
            self.results.count_doubt(open.doubt.unwrap_or(Doubt::Edge), &open, last_ns);
        }
        let (missing, sched) = (self.seen.missing(), self.sched);
        let (dirty_pauses, lock_waits) = (self.dirty_pauses, self.lock_waits);
        Trace { missing, sched, dirty_pauses, lock_waits, ..self.results.into_trace() }
    }

    /// Requests without a beginning, on devices where others have one: what was seen may not have been their
    /// first issue, nor all of them.
    fn doubt_bare(&mut self) {
        for (index, doubt) in std::mem::take(&mut self.bare) {
            let dev = self.results.request(index).map(|request| request.dev);
            if dev.is_some_and(|dev| self.giving.contains(&dev)) {
                self.results.doubt_request(index, doubt);
            }
        }
    }

    fn dispatch(&mut self, event: &Event) {
        match event.what {
            EventKind::BioQueue(extent) => self.queue(event, &extent),
            EventKind::BioRemap { to, from } => self.remap(event, &to, from),
            EventKind::BioSplit { bio, new_sector } => self.split(event, &bio, new_sector),
            EventKind::BackMerge(extent) => self.merge(event, &extent, requests::Side::Back),
            EventKind::FrontMerge(extent) => self.merge(event, &extent, requests::Side::Front),
            EventKind::RequestMerge(extent) => self.merge_requests(&extent),
            EventKind::GetRequest(extent) => self.get_request(event, &extent),
            EventKind::Insert(extent) => self.insert(event, &extent),
            EventKind::K2Split { piece, rest_bytes } => self.cut_piece(&piece, rest_bytes),
            EventKind::Issue(extent) => self.issue(event, &extent),
            EventKind::Requeue(extent) => self.requeue(event, &extent),
            EventKind::Complete { extent, error } => self.complete(event, &extent, error),
            EventKind::HardwareStart(command) => self.start_hardware(event, &command),
            EventKind::HardwareDone(command) => self.end_hardware(event, &command),
            EventKind::Switch(switch) => {
                self.note_sched(event, SchedWhat::Switch(switch));
                self.note_fault_sleep(&switch, event.time_ns);
            }
            EventKind::Waking(waking) => {
                let completed_ns = self.completion_before(event);
                let by = (event.pid, event.comm);
                self.note_sched(event, SchedWhat::Waking { waking, by, completed_ns });
            }
            EventKind::DirtyPause { pause_ns } => {
                let (pid, begin_ns) = (event.pid, event.time_ns);
                self.dirty_pauses.push(DirtyPause { pid, begin_ns, pause_ns });
            }
            EventKind::Lost { count, since_ns } => self.lose(event, count, since_ns),
            _ => self.dispatch_to_threads(event),
        }
    }

    fn note_sched(&mut self, event: &Event, what: SchedWhat) {
        self.sched.take(SchedEvent { time_ns: event.time_ns, cpu: event.cpu, what });
    }

    /// The completion of a request wakes who waits for it right away, on the same CPU and on top of the same thread.
    fn note_completion(&mut self, event: &Event) {
        match event.what {
            EventKind::Complete { .. } => {
                self.completing.insert(event.cpu, (event.time_ns, event.pid));
            }
            EventKind::Waking(_) | EventKind::HardwareDone(_) => {}
            _ => drop(self.completing.remove(&event.cpu)),
        }
    }

    /// When the request completed whose completion this wakeup is a part of.
    fn completion_before(&self, event: &Event) -> Option<u64> {
        let (completed_ns, pid) = *self.completing.get(&event.cpu)?;
        let is_part = pid == event.pid && event.time_ns - completed_ns <= COMPLETION_NS_MAX;
        is_part.then_some(completed_ns)
    }

    /// Events of this CPU are missing since its last one. What is open may have changed unseen, and what completed
    /// since then may have been mistaken for something else.
    fn lose(&mut self, event: &Event, count: u64, since_ns: Option<u64>) {
        self.results.account.events_lost += count;
        self.note_sched(event, SchedWhat::Lost);
        let last_ns = self.last_ns.get(&event.cpu).copied().unwrap_or(0);
        let since_ns = since_ns.unwrap_or(last_ns);
        self.results.take_back(since_ns);
        self.tasks.abandon_all(&mut self.results);
        self.flushes.forget();
        self.hardware.forget();
        self.threads.clear();
        self.uring = Uring::default();
        for slot in self.table.slots() {
            self.lose_sight(slot);
            if let Some(open) = self.table.get_mut(slot) {
                open.shares.clear();
                open.flushes.clear();
            }
        }
    }
}
