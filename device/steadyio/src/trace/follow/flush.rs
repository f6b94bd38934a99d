// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushes. Whoever wants the device's cache flushed waits in the block layer for a flush request that it makes
//! itself, one at a time per hardware queue: one serves all that wait when it begins.
//!
//! What proves who was served: at the end of a flush request (FF) the same CPU ends the requests that waited for
//! nothing else, at once and one after the other, each with a completion of no sectors. Data that a flush
//! precedes goes to the driver next; data that one follows ends, with no sectors, in that same series.

use std::collections::HashMap;

use super::super::event::{Dev, Event, Extent, OpKind, What};
use super::super::io::Mark;
use super::Follower;
use super::open::{Place, Sequence, Slot};
use super::results::Results;
use super::tasks::Share;
use super::threads::Bio;

/// A bio that asks for a flush and has no data.
#[derive(Debug)]
struct Waiter {
    got_ns: u64,
    cpu: u32,
    bio: Bio,
}

/// A flush request that ended, until the CPU does something else than ending those it served.
#[derive(Debug)]
struct Ended {
    cpu: u32,
    pid: u32,
    dev: Dev,
    request: usize,
    issued_ns: u64,
    /// How many without data were ended after it.
    served: usize,
}

/// Data that ended, in a sequence that has not.
#[derive(Debug)]
struct Rest {
    request: usize,
    shares: Vec<Share>,
    ended_ns: u64,
    sequence: Sequence,
    end: u64,
}

/// All flushes under way.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    waiters: HashMap<Dev, Vec<Waiter>>,
    /// Data that waits for a flush before it.
    preflushing: HashMap<Dev, Vec<Slot>>,
    rests: HashMap<Place, Rest>,
    /// Where they begin, by where they end: kernels differ in which of the two the last event shows.
    rest_ends: HashMap<Place, u64>,
    /// At most one per CPU.
    ended: Vec<Ended>,
}

impl Flushes {
    /// After a loss.
    pub fn forget(&mut self) {
        *self = Flushes::default();
    }

    fn take_rest(&mut self, dev: Dev, sector: u64) -> Option<Rest> {
        let begin = match self.rests.contains_key(&(dev, sector)) {
            true => sector,
            false => *self.rest_ends.get(&(dev, sector))?,
        };
        let rest = self.rests.remove(&(dev, begin))?;
        self.rest_ends.remove(&(dev, rest.end));
        Some(rest)
    }
}

impl Follower {
    /// A bio without data has a request that will never be issued.
    pub(super) fn await_flush(&mut self, event: &Event, bio: Bio) {
        let waiter = Waiter { got_ns: event.time_ns, cpu: event.cpu, bio };
        self.flushes.waiters.entry(waiter.bio.dev).or_default().push(waiter);
    }

    /// A request with data waits for a flush.
    pub(super) fn await_preflush(&mut self, dev: Dev, slot: Slot) {
        self.flushes.preflushing.entry(dev).or_default().push(slot);
    }

    /// It waits no longer. One flush can have been the one; of several, nobody can say which.
    pub(super) fn settle_preflush(&mut self, dev: Dev, slot: Slot) {
        let Some(slots) = self.flushes.preflushing.get_mut(&dev) else { return };
        slots.retain(|other| *other != slot);
        if let Some(open) = self.table.get_mut(slot) {
            if open.flushes.len() > 1 {
                open.flushes.clear();
            }
        }
    }

    /// A request ended: if it is a flush, those that it served end next.
    pub(super) fn note_flush(&mut self, request: usize, event: &Event) {
        let Some(flush) = self.results.request(request) else { return };
        let Some(issued_ns) = flush.marks.get(Mark::Issued) else { return };
        if flush.op.kind != OpKind::Flush {
            return;
        }
        let (dev, cpu, pid) = (flush.dev, event.cpu, event.pid);
        for slot in self.flushes.preflushing.get(&dev).into_iter().flatten() {
            if let Some(open) = self.table.get_mut(*slot) {
                if open.marks.get(Mark::GotRequest).is_some_and(|got_ns| got_ns <= issued_ns) {
                    open.flushes.push(request);
                }
            }
        }
        self.flushes.ended.retain(|ended| ended.cpu != cpu);
        self.flushes.ended.push(Ended { cpu, pid, dev, request, issued_ns, served: 0 });
    }

    /// Data in a flush sequence ended.
    pub(super) fn begin_sequence(
        &mut self,
        request: usize,
        sequence: Sequence,
        shares: &[Share],
        event: &Event,
    ) {
        let Some(data) = self.results.request(request) else { return };
        let (dev, begin) = (data.dev, data.sector);
        let end = begin.wrapping_add(data.bytes >> 9);
        // The flush to come is theirs too.
        let shares = if sequence.postflush { shares.to_vec() } else { Vec::new() };
        shares.iter().for_each(|share| self.tasks.hold(share.task));
        let rest = Rest { request, shares, ended_ns: event.time_ns, sequence, end };
        self.flushes.rest_ends.insert((dev, end), begin);
        if let Some(stale) = self.flushes.rests.insert((dev, begin), rest) {
            stale.shares.iter().for_each(|share| self.drop_share(share));
        }
    }

    /// A completion of no sectors: a request that waited for a flush, or the end of a sequence.
    pub(super) fn end_sequence(&mut self, event: &Event, extent: &Extent, error: i32) {
        let here =
            |ended: &Ended| (ended.cpu, ended.pid, ended.dev) == (event.cpu, event.pid, extent.dev);
        let flush = self.flushes.ended.iter().position(here);
        if let Some(rest) = self.flushes.take_rest(extent.dev, extent.sector) {
            let flush = flush.map(|at| &self.flushes.ended[at]);
            return self.end_rest(&rest, flush.map(|f| (f.request, f.issued_ns)), error);
        }
        match flush {
            Some(at) => self.flushes.ended[at].served += 1,
            None => self.serve(extent.dev, 1, None),
        }
    }

    fn end_rest(&mut self, rest: &Rest, flush: Option<(usize, u64)>, error: i32) {
        if let Some(data) = self.results.request_mut(rest.request).filter(|data| data.error == 0) {
            data.error = error;
        }
        if !rest.sequence.postflush {
            return;
        }
        let after = flush.filter(|(_, issued_ns)| *issued_ns >= rest.ended_ns);
        let got_ns = self.results.request(rest.request).and_then(|r| r.marks.get(Mark::GotRequest));
        for share in &rest.shares {
            match after {
                Some((flush, _)) => {
                    self.link_flush(flush, share, got_ns, rest.request);
                    self.tasks.release(share.task, &mut self.results);
                }
                // The data failed, and no flush followed; or it is not known which one did.
                None if error != 0 => self.tasks.release(share.task, &mut self.results),
                None => self.drop_share(share),
            }
        }
    }

    /// `flush` is also for this share, whose data is `data`.
    pub(super) fn link_flush(
        &mut self,
        flush: usize,
        share: &Share,
        got_ns: Option<u64>,
        data: usize,
    ) {
        let Some((pid, comm)) = self.results.request(data).map(|data| (data.pid, data.comm)) else {
            return;
        };
        let first = attach(&mut self.results, flush, share, got_ns, (pid, comm));
        self.tasks.add(share, flush, first);
    }

    /// Called before each event: settles whom the last flush on this CPU served, once that is over.
    pub(super) fn settle_flushes(&mut self, event: &Event) {
        let Some(at) = self.flushes.ended.iter().position(|ended| {
            ended.cpu == event.cpu && ended.served > 0 && !still_serving(ended, event)
        }) else {
            return;
        };
        self.settle_flush(at);
    }

    pub(super) fn settle_all_flushes(&mut self) {
        while !self.flushes.ended.is_empty() {
            self.settle_flush(0);
        }
    }

    fn settle_flush(&mut self, at: usize) {
        let ended = self.flushes.ended.remove(at);
        if ended.served > 0 {
            self.serve(ended.dev, ended.served, Some((ended.request, ended.issued_ns)));
        }
    }

    /// So many of those that wait were ended after `flush` (its result, and when it was issued). Who, if there
    /// are more: the first come of one queue, but which queue is known only if all are of one CPU.
    fn serve(&mut self, dev: Dev, served: usize, flush: Option<(usize, u64)>) {
        let waiters = self.flushes.waiters.entry(dev).or_default();
        let issued_ns = flush.map_or(u64::MAX, |(_, issued_ns)| issued_ns);
        let candidates = waiters.iter().take_while(|waiter| waiter.got_ns <= issued_ns).count();
        let one_cpu = waiters[..candidates].windows(2).all(|pair| pair[0].cpu == pair[1].cpu);
        let known = served == candidates || (served < candidates && one_cpu);
        if !known || flush.is_none() {
            for waiter in &waiters[..candidates] {
                self.tasks.spoil(waiter.bio.share.task);
            }
        }
        let ended: Vec<Waiter> = waiters.drain(..served.min(candidates)).collect();
        for waiter in ended {
            let share = waiter.bio.share;
            if let Some((flush, _)) = flush.filter(|_| known) {
                let got_ns = Some(waiter.got_ns);
                let who = (waiter.bio.pid, waiter.bio.comm);
                let first = attach(&mut self.results, flush, &share, got_ns, who);
                self.tasks.add(&share, flush, first);
            }
            self.tasks.release(share.task, &mut self.results);
        }
    }
}

/// A flush request has no bio; those that it served are in place of them. Returns whether this is its first.
fn attach(
    results: &mut Results,
    flush: usize,
    share: &Share,
    got_ns: Option<u64>,
    (pid, comm): (u32, super::super::event::Comm),
) -> bool {
    let Some(request) = results.request_mut(flush) else { return false };
    let earlier = request.marks.get(Mark::Queued);
    if let Some(earlier) = earlier {
        request.merged_queued_ns.push(earlier.max(share.queued_ns));
        if earlier <= share.queued_ns {
            return false;
        }
    }
    request.marks.set(Mark::Queued, share.queued_ns);
    if let Some(got_ns) = got_ns {
        request.marks.set(Mark::GotRequest, got_ns);
    }
    (request.pid, request.comm, request.origin) = (pid, comm, share.origin);
    earlier.is_none()
}

fn still_serving(ended: &Ended, event: &Event) -> bool {
    match event.what {
        What::Complete { extent, .. } => {
            extent.sectors == 0 && (event.pid, extent.dev) == (ended.pid, ended.dev)
        }
        _ => false,
    }
}
