// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushes. Requests with a flush wait in the block layer for a flush request that it makes itself
//! (`block/blk-flush.c`), one at a time per hardware queue: one serves all that wait when it begins.
//!
//! What proves which were served: right after the completion of a flush request (FF) the same CPU completes the
//! requests that waited for nothing else, one after the other, each with no sectors. Data that a flush precedes is
//! issued next; data that one follows completes, with no sectors, in that same series.

use std::collections::HashMap;

use super::open::Open;
use super::table::Table;
use crate::event::{Dev, Event, EventKind, Extent, OpKind};
use crate::follow::bios::add_new;
use crate::follow::sink::{Results, Share, Sink};
use crate::io::{Mark, Request};

/// One that asks for a flush and has no data, and on which CPU.
type Waiter = (u32, Open);

/// Data that completed and still needs a flush after it.
#[derive(Debug)]
struct Rest {
    request: usize,
    shares: Vec<Share>,
    ended_ns: u64,
    /// The last event shows the one or the other: kernels differ.
    begin: u64,
    end: u64,
}

/// The result of a flush request, and when it was issued, in ns.
type Flush = (usize, u64);

/// A flush request that completed, until the CPU does something else than completing those it served.
#[derive(Debug)]
struct Ended {
    cpu: u32,
    pid: u32,
    dev: Dev,
    flush: Flush,
    /// The sectors of those completed after it.
    served: Vec<u64>,
    /// The error that these got, where the flush request itself got none: 0, or a negative errno.
    error: i32,
}

#[derive(Debug, Default)]
pub(in crate::follow) struct Flushes {
    pub waiters: HashMap<Dev, Vec<Waiter>>,
    rests: HashMap<Dev, Vec<Rest>>,
    /// At most one per CPU, in the order of their end.
    ended: Vec<Ended>,
    /// CPUs that completed data of a sequence that no flush follows, and will complete the sequence next.
    closing: Vec<(u32, Dev)>,
}

impl Flushes {
    /// A request completed: if it is a flush, those that it served complete next.
    pub fn note_end(&mut self, request: usize, event: &Event, table: &mut Table, sink: &Sink) {
        let Some(flush) = sink.results.request(request) else { return };
        let Some(issued_ns) = flush.marks.get(Mark::Issued) else { return };
        if flush.op.kind != OpKind::Flush {
            return;
        }
        let (dev, cpu, pid) = (flush.dev, event.cpu, event.pid);
        for (_, open) in &mut table.all {
            if open.awaits_flush && open.request.dev == dev && open.came_before(issued_ns) {
                open.flushes.push(request);
            }
        }
        self.ended.retain(|ended| ended.cpu != cpu);
        let (flush, served) = ((request, issued_ns), Vec::new());
        self.ended.push(Ended { cpu, pid, dev, flush, served, error: 0 });
    }

    /// Data in a flush sequence completed.
    pub fn begin_sequence(
        &mut self,
        request: usize,
        postflush: bool,
        shares: &[Share],
        event: &Event,
        sink: &mut Sink,
    ) {
        let Some(data) = sink.results.request(request) else { return };
        let (dev, begin, end) = (data.dev, data.sector, data.sector.wrapping_add(data.bytes >> 9));
        // After an error no flush follows.
        if !postflush || data.error != 0 {
            self.closing.push((event.cpu, dev));
            return;
        }
        // The flush to come is theirs too.
        shares.iter().for_each(|share| sink.hold(share.task));
        let (shares, ended_ns) = (shares.to_vec(), event.time_ns);
        let rest = Rest { request, shares, ended_ns, begin, end };
        self.rests.entry(dev).or_default().push(rest);
    }

    /// A completion of no sectors: a request that waited for a flush, or the end of a sequence.
    pub fn end_sequence(&mut self, event: &Event, extent: &Extent, error: i32, sink: &mut Sink) {
        let (cpu, dev) = (event.cpu, extent.dev);
        if let Some(at) = self.closing.iter().position(|it| *it == (cpu, dev)) {
            self.closing.swap_remove(at);
            return;
        }
        let here = |ended: &&mut Ended| (ended.cpu, ended.pid, ended.dev) == (cpu, event.pid, dev);
        match self.ended.iter_mut().find(here) {
            Some(flush) => {
                flush.served.push(extent.sector);
                flush.error = if flush.error == 0 { error } else { flush.error };
            }
            None => self.serve(dev, &[extent.sector], None, sink),
        }
    }

    /// Called before each event: settles which requests the last flush on this CPU served, once all have completed.
    pub fn settle(&mut self, event: &Event, sink: &mut Sink) {
        if self.ended.is_empty() && self.closing.is_empty() {
            return;
        }
        let goes_on = |dev, pid| match event.what {
            EventKind::Complete { extent, .. } => {
                let empty = extent.sectors == 0 && extent.op.kind != OpKind::Flush;
                empty && (event.pid, extent.dev) == (pid, dev)
            }
            EventKind::Interrupt => true,
            _ => false,
        };
        self.closing.retain(|(cpu, dev)| *cpu != event.cpu || goes_on(*dev, event.pid));
        let over = |ended: &Ended| ended.cpu == event.cpu && !goes_on(ended.dev, ended.pid);
        let Some(at) = self.ended.iter().position(over) else { return };
        // Those that completed before it on this device were served before it.
        let dev = self.ended[at].dev;
        let later = self.ended.split_off(at + 1);
        let (due, others): (Vec<Ended>, _) = self.ended.drain(..).partition(|one| one.dev == dev);
        self.ended = others.into_iter().chain(later).collect();
        due.into_iter().for_each(|ended| self.settle_one(ended, sink));
    }

    pub fn settle_all(&mut self, sink: &mut Sink) {
        std::mem::take(&mut self.ended).into_iter().for_each(|ended| self.settle_one(ended, sink));
    }

    fn settle_one(&mut self, ended: Ended, sink: &mut Sink) {
        let request = sink.results.requests[ended.flush.0].as_mut();
        if let Some(request) = request.filter(|request| request.error == 0) {
            request.error = ended.error;
        }
        if !ended.served.is_empty() {
            self.serve(ended.dev, &ended.served, Some(ended.flush), sink);
        }
    }

    /// The requests at `served` completed after `flush`. If these are all that waited when it was issued, it is clear which; else data is known by its sectors, and of those without data,
    /// the oldest of one queue. Which queue is known only if all are of one CPU.
    fn serve(&mut self, dev: Dev, served: &[u64], flush: Option<Flush>, sink: &mut Sink) {
        let issued_ns = flush.map_or(u64::MAX, |(_, issued_ns)| issued_ns);
        let waiters = self.waiters.entry(dev).or_default();
        let rests = self.rests.entry(dev).or_default();
        let waiting = waiters.iter().take_while(|(_, asker)| asker.came_before(issued_ns)).count();
        let due = rests.iter().take_while(|rest| rest.ended_ns <= issued_ns).count();

        let at = |rest: &Rest, sector: u64| rest.begin == sector || rest.end == sector;
        let fitting = |sector: u64| rests[..due].iter().filter(|rest| at(rest, sector)).count();
        // Device mapper's flushes have the sector that is mapped there.
        let asks = |sector: u64| {
            sector == 0 || waiters[..waiting].iter().any(|(_, asker)| asker.sector == sector)
        };
        let empties: Vec<u64> = served.iter().copied().filter(|sector| asks(*sector)).collect();
        let one_cpu = waiters[..waiting].windows(2).all(|pair| pair[0].0 == pair[1].0);
        let all = served.len() == waiting + due;
        let clear = served.iter().all(|sector| fitting(*sector) == usize::from(!asks(*sector)));
        let first = take_askers(waiters, waiting, &empties);
        let known = flush.is_some()
            && first.len() == empties.len()
            && (all || (clear && (first.len() == waiting || one_cpu)));

        let is_served = |rest: &Rest| all || served.iter().any(|sector| at(rest, *sector));
        let (ended, left): (Vec<Rest>, Vec<Rest>) = rests.drain(..due).partition(is_served);
        rests.splice(..0, left);
        if !known {
            let waiters = waiters.iter().take(waiting - first.len());
            let shares = waiters.flat_map(|(_, asker)| &asker.shares);
            let shares = shares.chain(rests.iter().flat_map(|rest| &rest.shares));
            shares.for_each(|share| sink.invalidate(share.task));
        }
        let flush = flush.filter(|_| known).map(|(flush, _)| flush);
        for (_, asker) in first {
            serve_shares(flush, &asker.shares, &asker.request, sink);
        }
        for Rest { request, shares, .. } in ended {
            let asker = sink.results.request(request).cloned().unwrap_or_default();
            serve_shares(flush, &shares, &asker, sink);
        }
    }
}

/// `flush` was for these shares; which one was, is not known if it is `None`.
fn serve_shares(flush: Option<usize>, shares: &[Share], asker: &Request, sink: &mut Sink) {
    for share in shares {
        let Some(flush) = flush else {
            sink.drop_share(share);
            continue;
        };
        link(flush, share, asker, sink);
        sink.release(share.task);
    }
}

/// `flush` is also for this share, which `asker` is for.
pub(super) fn link(flush: usize, share: &Share, asker: &Request, sink: &mut Sink) {
    let first = attach(&mut sink.results, flush, share, asker);
    sink.add(share, flush, first);
}

/// Takes those of the first `waiting` that `empties` name, the first come first.
fn take_askers(waiters: &mut Vec<Waiter>, waiting: usize, empties: &[u64]) -> Vec<Waiter> {
    let mut taken: Vec<Waiter> = Vec::new();
    for sector in empties {
        let left = waiters.iter().take(waiting - taken.len());
        let found = left.map(|(_, asker)| asker.sector).position(|other| other == *sector);
        taken.extend(found.map(|at| waiters.remove(at)));
    }
    taken
}

/// A flush request has no bio; those that it served are in place of them. Returns whether this is its first.
fn attach(results: &mut Results, flush: usize, share: &Share, asker: &Request) -> bool {
    let Some(request) = &mut results.requests[flush] else { return false };
    add_new(&mut request.through, &asker.through);
    let Some(queued_ns) = asker.marks.get(Mark::Queued) else { return false };
    let earlier = request.marks.get(Mark::Queued);
    if let Some(earlier) = earlier {
        request.merged_queued_ns.push(earlier.max(queued_ns));
        if earlier <= queued_ns {
            return false;
        }
    }
    request.marks.set(Mark::Queued, queued_ns);
    if let Some(got_ns) = asker.marks.get(Mark::GotRequest) {
        request.marks.set(Mark::GotRequest, got_ns);
    }
    (request.pid, request.comm, request.origin) = (asker.pid, asker.comm, share.origin);
    earlier.is_none()
}
