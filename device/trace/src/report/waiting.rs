// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the reason for a call's wait at each moment: its own requests, those of others, the
//! journal, dirty throttling, a lock, or a CPU. A moment that no event explains is unknown.
//! `shown`, `own_time` and `perfetto` use it.

use std::collections::{BTreeMap, HashSet};

use super::by_key;
use super::rows::Item;
use super::thread_time::{Doing, Stay, stays};
use super::waited_for::WaitedFor;
use crate::event::{Call, Comm};
use crate::intervals::Intervals;
use crate::io::{OfThread, Origin, Request, Trace};

/// A part of a call's time in which it waited for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    pub what: WaitedFor,
    pub from_ns: u64,
    pub to_ns: u64,
    /// The state of its thread, if known.
    pub stay: Option<Stay>,
    /// The request that it waited for, if known and not one of its own.
    pub request: Option<&'a Request>,
}

/// A trace, with the times at which each thread was paused, waited for a lock, or read ahead.
pub struct Waiting<'a> {
    pub trace: &'a Trace,
    paused: OfThreads,
    locked: OfThreads,
    /// The readahead requests of each thread, sorted by their end.
    reading_ahead: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The times at which writeback requests were queued or in flight, and the threads that queued
    /// them.
    writeback: Intervals,
    flushers: HashSet<u32>,
    /// Requests by the time of their completion. Text may give several the same time.
    completed: BTreeMap<u64, Vec<&'a Request>>,
}

/// Times per thread.
type OfThreads = BTreeMap<u32, Intervals>;

fn of_threads(times: &[OfThread]) -> OfThreads {
    let times = by_key(times.iter().map(|of| (of.pid, (of.begin_ns, of.end_ns)))).into_iter();
    times.map(|(pid, times)| (pid, Intervals::new(times))).collect()
}

fn during(times: &OfThreads, pid: u32, (from_ns, to_ns): (u64, u64)) -> Intervals {
    times.get(&pid).map(|own| own.within(from_ns, to_ns)).unwrap_or_default()
}

impl<'a> Waiting<'a> {
    pub fn new(trace: &'a Trace) -> Waiting<'a> {
        let ahead = trace.requests.iter().filter(|of| matches!(of.origin, Origin::Readahead(_)));
        let mut reading_ahead = by_key(ahead.map(|of| (of.pid, of.life())));
        let writeback =
            || trace.requests.iter().filter(|of| matches!(of.origin, Origin::Writeback(_)));
        reading_ahead.values_mut().for_each(|all| all.sort_by_key(|(_, end)| *end));
        Waiting {
            trace,
            paused: of_threads(&trace.dirty_pauses),
            locked: of_threads(&trace.lock_waits),
            reading_ahead,
            writeback: Intervals::new(writeback().map(|of| of.life())),
            flushers: writeback().map(|of| of.pid).collect(),
            completed: by_key(trace.requests.iter().map(|of| (of.end_ns(), of))),
        }
    }

    /// Adds the waits to an I/O or call.
    pub fn fill(&self, mut item: Item<'a>) -> Item<'a> {
        for wait in self.of(&item) {
            *item.waits.entry(wait.what).or_default() += length(&wait);
        }
        item.row.waited_for = Some(item.most().into_str());
        item
    }

    /// The waits of an I/O or a call, in time order, without gaps.
    pub fn of(&self, item: &Item<'a>) -> Vec<Wait<'a>> {
        let during_ns = item.during_ns();
        let life = |journal: bool| {
            let own = item.own.iter().filter(|of| (of.origin == Origin::Journal) == journal);
            Intervals::new(own.map(|of| of.life())).within(during_ns.0, during_ns.1)
        };
        let own = life(false);
        let journal = life(true).minus(&own);
        let idle = Intervals::new([during_ns]).minus(&own).minus(&journal);
        let mut waits: Vec<Wait> = parts(WaitedFor::OwnRequest, &own).collect();
        waits.extend(parts(WaitedFor::Journal, &journal));
        let by_stays = self.stays(item).map(|stays| self.by_stays(item, &stays, &idle));
        waits.extend(by_stays.unwrap_or_else(|| self.by_facts(item, idle)));
        waits.sort_by_key(|wait| wait.from_ns);
        waits
    }

    /// The states of its thread; `None` if some are unknown.
    fn stays(&self, item: &Item) -> Option<Vec<Stay>> {
        // An operation of io_uring or aio can complete while its thread sleeps.
        let call = item.io.map(|io| io.call);
        let may_sleep = matches!(call, Some(Call::IoUringEnter | Call::IoSubmit));
        let runs_at_end = item.own.is_empty() || !may_sleep;
        stays(&self.trace.sched, item.row.pid, item.during_ns(), runs_at_end)
    }

    /// The waits of a call if the states of its thread are known.
    fn by_stays(&self, item: &Item, stays: &[Stay], idle: &Intervals) -> Vec<Wait<'a>> {
        let locked = during(&self.locked, item.row.pid, item.during_ns());
        let of_stay = |stay: &Stay| {
            let when = Intervals::new([(stay.from_ns, stay.to_ns)]).overlap(idle);
            let (what, request) = match stay.doing {
                Doing::Running => (WaitedFor::Running, None),
                Doing::Ready => (WaitedFor::Cpu, None),
                Doing::Asleep => self.slept_for(item.row.pid, stay),
            };
            // A running thread may spin on a lock.
            let may_spin = stay.doing == Doing::Running;
            let spins = if may_spin { when.overlap(&locked) } else { Intervals::default() };
            let waits = parts(WaitedFor::Lock, &spins).chain(parts(what, &when.minus(&spins)));
            let stay = Some(*stay);
            waits.map(move |wait| Wait { stay, request, ..wait })
        };
        stays.iter().flat_map(of_stay).collect()
    }

    /// The reason for a sleep: a pause or a lock that came before it, or the waker.
    fn slept_for(&self, pid: u32, stay: &Stay) -> (WaitedFor, Option<&'a Request>) {
        let begin_ns = (stay.from_ns, stay.from_ns + 1);
        let was = |times: &OfThreads| !during(times, pid, begin_ns).is_empty();
        if was(&self.locked) {
            return (WaitedFor::Lock, None);
        }
        if was(&self.paused) {
            return (WaitedFor::DirtyThrottling, None);
        }
        let Some(woken) = stay.woken else { return (WaitedFor::Unknown, None) };
        let Some(completed_ns) = woken.completed_ns else {
            return (self.served_by(woken.by), None);
        };
        let what = |of: &&Request| served_for(of, pid);
        match self.completed.get(&completed_ns).map_or(&[][..], Vec::as_slice) {
            [only] => (what(only), Some(*only)),
            [one, others @ ..] if others.iter().all(|of| what(of) == what(one)) => {
                (what(one), None)
            }
            _ => (WaitedFor::Unknown, None),
        }
    }

    /// The reason for a wait that another thread ended, without the completion of a request.
    fn served_by(&self, (pid, comm): (u32, Comm)) -> WaitedFor {
        match comm.as_bytes() {
            _ if comm.is_journal() => WaitedFor::Journal,
            _ if self.flushers.contains(&pid) => WaitedFor::Writeback,
            name if name.starts_with(b"iou-") => WaitedFor::Worker,
            _ => WaitedFor::Unknown,
        }
    }

    /// The waits of a call if the switches of its thread are unknown: only the certain ones.
    fn by_facts(&self, item: &Item, idle: Intervals) -> Vec<Wait<'a>> {
        let (pid, during_ns) = (item.row.pid, item.during_ns());
        let mut waits = Vec::new();
        let mut left = idle;
        let mut take = |what: WaitedFor, when: &Intervals| {
            waits.extend(parts(what, &left.overlap(when)));
            left = left.minus(when);
        };
        take(WaitedFor::DirtyThrottling, &during(&self.paused, pid, during_ns));
        take(WaitedFor::Lock, &during(&self.locked, pid, during_ns));
        if item.io.is_some_and(|io| io.has_commit) {
            take(WaitedFor::Journal, &Intervals::new([during_ns]));
        }
        if item.io.is_some_and(|io| io.call.is_read()) {
            take(WaitedFor::Readahead, &self.readahead_in(pid, during_ns));
        }
        if item.io.is_some_and(|io| matches!(io.call, Call::Sync | Call::Syncfs)) {
            take(WaitedFor::Writeback, &self.writeback.within(during_ns.0, during_ns.1));
        }
        waits.extend(parts(WaitedFor::Unknown, &left));
        waits
    }

    /// The times at which readahead requests were queued or in flight that ended in the given
    /// period.
    fn readahead_in(&self, pid: u32, (from_ns, to_ns): (u64, u64)) -> Intervals {
        let all = self.reading_ahead.get(&pid).map_or(&[][..], Vec::as_slice);
        let ended = all.partition_point(|(_, end)| *end < from_ns);
        let ends = all[ended..].iter().take_while(|(_, end)| *end <= to_ns);
        Intervals::new(ends.copied()).within(from_ns, to_ns)
    }
}

fn parts<'a>(what: WaitedFor, when: &Intervals) -> impl Iterator<Item = Wait<'a>> + use<'a> {
    let part = move |(from_ns, to_ns)| Wait { what, from_ns, to_ns, stay: None, request: None };
    when.to_vec().into_iter().map(part)
}

/// The reason for which thread `pid` waited if the completion of this request woke it.
fn served_for(request: &Request, pid: u32) -> WaitedFor {
    match (request.origin, request.pid == pid) {
        (Origin::Journal, _) => WaitedFor::Journal,
        (Origin::Readahead(_), true) => WaitedFor::Readahead,
        (_, true) => WaitedFor::OwnRequest,
        (Origin::Writeback(_), false) => WaitedFor::Writeback,
        (_, false) => WaitedFor::OtherRequest,
    }
}

/// The length in ns.
pub fn length(wait: &Wait) -> u64 {
    wait.to_ns - wait.from_ns
}
