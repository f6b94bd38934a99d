// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a call waited for, moment by moment: its own requests, those of others, the journal, dirty throttling, a lock,
//! a CPU. What no event tells is unknown.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::thread_time::{Doing, Stay, Woken, stays};
use crate::event::Call;
use crate::intervals::Intervals;
use crate::io::{CallWithoutRequest, Io, Origin, Trace};

/// What a call waited for, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitedFor {
    /// A request that its own thread had queued.
    OwnRequest,
    /// A request that somebody else had queued.
    OtherRequest,
    /// A journal's commit.
    Journal,
    /// Its thread was paused, as one that writes too fast.
    DirtyThrottling,
    /// A request that its own thread had queued before, to read ahead.
    Readahead,
    /// A lock of the kernel.
    Lock,
    /// It was runnable, and had no CPU.
    Cpu,
    /// Nothing: it was running.
    Running,
    /// It slept, or no event tells what it did.
    Unknown,
}

impl WaitedFor {
    /// In sentences.
    pub fn title(self) -> &'static str {
        match self {
            WaitedFor::OwnRequest => "waiting for a request of its own thread",
            WaitedFor::OtherRequest => "waiting for a request of others",
            WaitedFor::Journal => "waiting for the journal",
            WaitedFor::DirtyThrottling => "throttled in balance_dirty_pages",
            WaitedFor::Readahead => "waiting for what it had begun to read ahead",
            WaitedFor::Lock => "waiting for a lock of the kernel",
            WaitedFor::Cpu => "waiting for a CPU",
            WaitedFor::Running => "running on a CPU",
            WaitedFor::Unknown => "waiting for an unknown reason",
        }
    }

    /// As records have it.
    pub fn word(self) -> &'static str {
        match self {
            WaitedFor::OwnRequest => "own_request",
            WaitedFor::OtherRequest => "other_request",
            WaitedFor::Journal => "journal",
            WaitedFor::DirtyThrottling => "dirty_throttling",
            WaitedFor::Readahead => "readahead",
            WaitedFor::Lock => "lock",
            WaitedFor::Cpu => "cpu",
            WaitedFor::Running => "running",
            WaitedFor::Unknown => "unknown",
        }
    }
}

/// A part of a call's time in which it waited for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub what: WaitedFor,
    pub from_ns: u64,
    pub to_ns: u64,
    /// How the sleep ended, if it was one.
    pub woken: Option<Woken>,
    /// The request that it waited for, in [`Trace::requests`], if it is known and not one of its own.
    pub request: Option<usize>,
}

/// A trace, and when in it each thread was paused, waited for a lock, or read ahead.
pub struct Waiting<'a> {
    trace: &'a Trace,
    paused: HashMap<u32, Intervals>,
    locked: HashMap<u32, Intervals>,
    /// From the first event of each to its completion, in the order of that.
    reading_ahead: HashMap<u32, Vec<(u64, u64)>>,
    /// Requests by the moment of their completion.
    completed: HashMap<u64, usize>,
}

/// The time of one call.
struct Span {
    pid: u32,
    from_ns: u64,
    to_ns: u64,
    runs_at_end: bool,
    is_read: bool,
    has_commit: bool,
}

impl<'a> Waiting<'a> {
    pub fn new(trace: &'a Trace) -> Waiting<'a> {
        let ahead = trace.requests.iter().filter(|of| matches!(of.origin, Origin::Readahead(_)));
        let mut reading_ahead: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
        for of in ahead {
            reading_ahead.entry(of.pid).or_default().push(of.life());
        }
        reading_ahead.values_mut().for_each(|all| all.sort_by_key(|(_, end)| *end));
        let pauses = trace.dirty_pauses.iter();
        let completed = trace.requests.iter().enumerate().map(|(index, of)| (of.end_ns(), index));
        Waiting {
            trace,
            paused: by_thread(pauses.map(|of| (of.pid, of.begin_ns, of.begin_ns + of.pause_ns))),
            locked: by_thread(trace.lock_waits.iter().map(|of| (of.pid, of.begin_ns, of.end_ns))),
            reading_ahead,
            completed: completed.collect(),
        }
    }

    /// In time order, without gaps.
    pub fn of_io(&self, io: &Io) -> Vec<Wait> {
        let requests = || io.requests.iter().map(|index| &self.trace.requests[*index]);
        let life = |journal: bool| {
            let chosen = requests().filter(move |of| (of.origin == Origin::Journal) == journal);
            Intervals::new(chosen.map(|of| of.life()))
        };
        // An operation of io_uring or aio can complete while its thread sleeps.
        let runs_at_end = !matches!(io.call, Call::IoUringEnter | Call::IoSubmit);
        let span = Span {
            pid: io.pid,
            from_ns: io.entered_ns,
            to_ns: io.exited_ns,
            runs_at_end,
            is_read: io.call.is_read(),
            has_commit: false,
        };
        self.waits(&span, &life(false), &life(true))
    }

    /// In time order, without gaps.
    pub fn of_call(&self, call: &CallWithoutRequest) -> Vec<Wait> {
        let span = Span {
            pid: call.pid,
            from_ns: call.entered_ns,
            to_ns: call.exited_ns,
            runs_at_end: true,
            is_read: call.call.is_read(),
            has_commit: call.has_commit,
        };
        self.waits(&span, &Intervals::default(), &Intervals::default())
    }

    fn waits(&self, span: &Span, own: &Intervals, journal: &Intervals) -> Vec<Wait> {
        let whole = Intervals::new([(span.from_ns, span.to_ns)]);
        let own = own.overlap(&whole);
        let journal = journal.overlap(&whole).minus(&own);
        let idle = whole.minus(&own).minus(&journal);
        let mut waits: Vec<Wait> = parts(WaitedFor::OwnRequest, &own);
        waits.extend(parts(WaitedFor::Journal, &journal));
        let during_ns = (span.from_ns, span.to_ns);
        match stays(&self.trace.sched, span.pid, during_ns, span.runs_at_end) {
            Some(stays) => waits.extend(self.by_stays(span, &stays, &idle)),
            None => waits.extend(self.by_facts(span, idle)),
        }
        waits.sort_by_key(|wait| wait.from_ns);
        waits
    }

    /// Where it is known when the thread slept.
    fn by_stays(&self, span: &Span, stays: &[Stay], idle: &Intervals) -> Vec<Wait> {
        let locked = during(&self.locked, span);
        let mut waits = Vec::new();
        for stay in stays {
            let when = Intervals::new([(stay.from_ns, stay.to_ns)]).overlap(idle);
            match stay.doing {
                Doing::Running => {
                    // It may spin.
                    waits.extend(parts(WaitedFor::Lock, &when.overlap(&locked)));
                    waits.extend(parts(WaitedFor::Running, &when.minus(&locked)));
                }
                Doing::Ready { .. } => waits.extend(parts(WaitedFor::Cpu, &when)),
                Doing::Asleep { woken } => {
                    let (what, request) = self.slept_for(span, stay, woken);
                    let asleep = parts(what, &when).into_iter();
                    waits.extend(asleep.map(|wait| Wait { woken, request, ..wait }));
                }
            }
        }
        waits
    }

    /// Why the thread slept: a pause or a lock that it had come to before, or what woke it.
    fn slept_for(
        &self,
        span: &Span,
        stay: &Stay,
        woken: Option<Woken>,
    ) -> (WaitedFor, Option<usize>) {
        let was = |all: &HashMap<u32, Intervals>| {
            let own = all.get(&span.pid);
            own.is_some_and(|own| !own.within(stay.from_ns, stay.from_ns + 1).is_empty())
        };
        if was(&self.locked) {
            return (WaitedFor::Lock, None);
        }
        if was(&self.paused) {
            return (WaitedFor::DirtyThrottling, None);
        }
        let Some(woken) = woken else { return (WaitedFor::Unknown, None) };
        if let Some(completed_ns) = woken.completed_ns {
            return self.request_of(span, completed_ns);
        }
        let by_journal = woken.by.1.as_bytes().starts_with(b"jbd2/");
        (if by_journal { WaitedFor::Journal } else { WaitedFor::Unknown }, None)
    }

    fn request_of(&self, span: &Span, completed_ns: u64) -> (WaitedFor, Option<usize>) {
        let Some(index) = self.completed.get(&completed_ns) else {
            return (WaitedFor::OtherRequest, None);
        };
        let request = &self.trace.requests[*index];
        let what = match request.origin {
            Origin::Journal => WaitedFor::Journal,
            Origin::Readahead(_) if request.pid == span.pid => WaitedFor::Readahead,
            _ if request.pid == span.pid => WaitedFor::OwnRequest,
            _ => WaitedFor::OtherRequest,
        };
        (what, Some(*index))
    }

    /// When requests to read ahead were queued or in flight that ended in that time.
    fn readahead_in(&self, span: &Span) -> Intervals {
        let all = self.reading_ahead.get(&span.pid);
        let Some(all) = all else { return Intervals::default() };
        let ended = all.partition_point(|(_, end)| *end < span.from_ns);
        let ends = all[ended..].iter().take_while(|(_, end)| *end <= span.to_ns);
        Intervals::new(ends.copied()).within(span.from_ns, span.to_ns)
    }

    /// Without switches of the thread: what is known to have been so in that time.
    fn by_facts(&self, span: &Span, idle: Intervals) -> Vec<Wait> {
        let mut waits = Vec::new();
        let mut left = idle;
        let mut take = |what: WaitedFor, when: &Intervals| {
            let when = left.overlap(when);
            waits.extend(parts(what, &when));
            left = left.minus(&when);
        };
        take(WaitedFor::DirtyThrottling, &during(&self.paused, span));
        take(WaitedFor::Lock, &during(&self.locked, span));
        if span.has_commit {
            take(WaitedFor::Journal, &Intervals::new([(span.from_ns, span.to_ns)]));
        }
        if span.is_read {
            take(WaitedFor::Readahead, &self.readahead_in(span));
        }
        waits.extend(parts(WaitedFor::Unknown, &left));
        waits
    }
}

fn parts(what: WaitedFor, when: &Intervals) -> Vec<Wait> {
    let part = |(from_ns, to_ns)| Wait { what, from_ns, to_ns, woken: None, request: None };
    when.iter().map(part).collect()
}

fn during(all: &HashMap<u32, Intervals>, span: &Span) -> Intervals {
    all.get(&span.pid).map(|own| own.within(span.from_ns, span.to_ns)).unwrap_or_default()
}

fn by_thread(times: impl Iterator<Item = (u32, u64, u64)>) -> HashMap<u32, Intervals> {
    let mut found: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    for (pid, begin, end) in times {
        found.entry(pid).or_default().push((begin, end));
    }
    found.into_iter().map(|(pid, times)| (pid, Intervals::new(times))).collect()
}

/// In ns.
pub fn length(wait: &Wait) -> u64 {
    wait.to_ns - wait.from_ns
}

/// What most of the time was waited for; of a call that took no time, unknown.
pub fn most(waits: &[Wait]) -> WaitedFor {
    let mut sums: BTreeMap<WaitedFor, u64> = BTreeMap::new();
    waits.iter().for_each(|wait| *sums.entry(wait.what).or_default() += length(wait));
    let most = sums.into_iter().max_by_key(|(what, ns)| (*ns, Reverse(*what)));
    most.map_or(WaitedFor::Unknown, |(what, _)| what)
}
