// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes I/Os from events. [`Follower`] takes each event once, in time order, and finds the request
//! and the I/O of the event. `steady trace` runs it.
//!
//! Block events do not name a request, only its device and sector. The stages replay the path of
//! each bio through the block layer. `callers` knows the work of each thread, and so the owner of a
//! bio. `bios` holds a bio until it has a request, and `requests` follows that to its completion.
//! All of them write to `sink`: I/Os and journal commits in progress, and results. `waits` has the
//! rest of each thread's activity; `seen` knows which events are missing.
//!
//! Nothing is guessed: if an event can belong to two requests, both are counted as unmatched. The
//! rules, for users, are in docs/reference/trace-rules.md.

mod bios;
mod callers;
mod descriptors;
mod requests;
mod seen;
mod sink;
mod waits;

use bios::{Bio, Bios};
use callers::Callers;
use descriptors::Descriptors;
use requests::{Requests, Side};
use sink::Sink;
use waits::Waits;

use super::event::{Event, EventKind, Extent, Kind};
use super::io::{Mark, Processes, Trace};
use super::open_files::OpenFiles;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The processes of threads that began before the trace, as far as known.
    pub processes: Processes,
    /// Whether sched events, if any, cover all threads.
    pub sched_of_all: bool,
    /// The files that processes had open.
    pub open_files: OpenFiles,
    /// Whether calls of `close` are reported. Otherwise they only show which file a descriptor has.
    pub shows_close: bool,
}

/// Takes events, and returns a [`Trace`].
#[derive(Debug, Default)]
pub struct Follower {
    callers: Callers,
    bios: Bios,
    requests: Requests,
    sink: Sink,
    waits: Waits,
}

impl Follower {
    pub fn new(options: Options) -> Follower {
        let mut follower = Follower::default();
        follower.waits.sched.of_all = options.sched_of_all;
        follower.callers.processes = options.processes;
        follower.callers.descriptors = Descriptors::new(options.open_files);
        follower.callers.shows_close = options.shows_close;
        follower
    }

    /// Takes the next event, in time order.
    pub fn take(&mut self, event: &Event) {
        self.sink.results.account.events += 1;
        self.sink.seen.note(event);
        self.waits.take(event);
        self.requests.flushes.settle(event, &mut self.sink);
        if self.callers.moves_on(event) {
            self.bios.drop_pending(event.pid, &mut self.sink);
        }
        self.callers.take(event, &mut self.sink);
        match event.what {
            EventKind::Lost { count, since_ns } => self.lose(count, since_ns),
            _ => self.take_bio_event(event),
        }
    }

    /// Ends the trace. Requests that are still open are at its edge.
    pub fn finish(mut self) -> Trace {
        self.requests.flushes.settle_all(&mut self.sink);
        self.callers.finish(&mut self.sink);
        self.sink.abandon_all();
        self.requests.finish(&mut self.sink);
        if !self.sink.seen.has(Kind::WritebackEnd) {
            self.sink.results.forget_writeback();
        }
        let Waits { sched, dirty_pauses, lock_waits, .. } = self.waits;
        let Callers { processes, descriptors, .. } = self.callers;
        let missing = self.sink.seen.missing();
        let mut trace = Trace {
            missing,
            processes,
            sched,
            dirty_pauses,
            lock_waits,
            ..self.sink.results.into_trace()
        };
        descriptors.finish(&mut trace);
        trace
    }

    fn take_bio_event(&mut self, event: &Event) {
        let Follower { bios, sink, .. } = self;
        match event.what {
            EventKind::BioQueue(extent) if bios.is_new(event, &extent, sink) => {
                let mut bio = self.new_bio(event, &extent);
                bio.request.marks.set(Mark::Queued, event.time_ns);
                self.bios.hold(event.pid, bio, &mut self.sink);
            }
            EventKind::BioRemap { to, from } => bios.remap(event.pid, &to, from, sink),
            EventKind::BioSplit { bio, new_sector } => bios.split(event, &bio, new_sector, sink),
            EventKind::BackMerge(extent) => self.merge(event, &extent, Side::Back),
            EventKind::FrontMerge(extent) => self.merge(event, &extent, Side::Front),
            EventKind::GetRequest(extent) => {
                let bio = self.bio_for_request(event, &extent);
                self.requests.allocate(event, &extent, bio);
            }
            _ => self.take_request_event(event),
        }
    }

    fn take_request_event(&mut self, event: &Event) {
        let Follower { requests, bios, sink, .. } = self;
        let Requests { commands, open, .. } = requests;
        match event.what {
            EventKind::HardwareStart(_) => commands.start(event, open, sink),
            EventKind::HardwareDone(command) => commands.end(event, &command, &mut open.table),
            EventKind::RequestMerge(extent) => requests.merge_requests(&extent, sink),
            EventKind::Insert(extent) => requests.insert(event, &extent, bios, sink),
            EventKind::Issue(extent) => requests.issue(event, &extent, bios, sink),
            EventKind::Requeue(extent) => {
                // Nothing was issued on this CPU after all.
                commands.forget_issue(event.cpu);
                requests.requeue(event, &extent, sink);
            }
            EventKind::Complete { extent, error } => {
                requests.complete(event, &extent, error, sink);
            }
            _ => {}
        }
    }

    fn merge(&mut self, event: &Event, extent: &Extent, side: Side) {
        let bio = self.bio_for_request(event, extent);
        self.requests.merge(bio, extent, side, &mut self.sink);
    }

    fn new_bio(&mut self, event: &Event, extent: &Extent) -> Bio {
        let share = self.callers.share_of(event, extent, &mut self.sink);
        self.bios.bio(event, extent, share)
    }

    /// The bio at `extent`, which this thread queued just before. If that was not seen, it is a new
    /// one.
    fn bio_for_request(&mut self, event: &Event, extent: &Extent) -> Bio {
        self.bios.take(event.pid, extent, &mut self.sink).unwrap_or_else(|| {
            let bio = self.new_bio(event, extent);
            self.sink.hold(bio.share.task);
            bio
        })
    }

    /// Handles a loss. Open requests may have changed unseen, and later completions may have been
    /// mistaken for others.
    fn lose(&mut self, count: u64, since_ns: Option<u64>) {
        let account = &mut self.sink.results.account;
        account.events_lost = account.events_lost.saturating_add(count);
        self.sink.results.take_back(since_ns.unwrap_or(0));
        self.sink.abandon_all();
        self.callers.forget(since_ns.unwrap_or(0));
        self.bios = Bios::default();
        self.requests.lose_sight();
    }
}
