// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches flushes with the requests that wait for them. `requests` calls it.
//!
//! A request with a flush waits in the block layer for a flush request that the block layer makes
//! (`block/blk-flush.c`), one at a time per hardware queue. The queue's pending list becomes its
//! running list when the flush is issued, and one flush serves that whole list.
//!
//! Completions prove which requests were served. Right after the completion of a flush request (FF)
//! the same CPU completes the requests that waited only for it, one after the other, each with no
//! sectors. Data that a flush precedes is issued next. Data that a flush follows completes in the
//! same series, with no sectors.

use std::collections::HashMap;

use crate::event::{Dev, Event, EventKind, Extent, OpKind};
use crate::follow::bios::add_new;
use crate::follow::sink::{Results, Share, Sink};
use crate::io::{Mark, Request};

/// A request without data that asks for a flush, or completed data that still needs one.
#[derive(Debug)]
struct Waiting {
    cpu: u32,
    since_ns: u64,
    /// The last event of data has its first sector or its end, depending on the kernel.
    sectors: [u64; 2],
    asker: Request,
    shares: Vec<Share>,
}

/// The requests on the running list that a flush served, by their index there.
#[derive(Debug)]
enum Verdict {
    Served(Vec<usize>),
    /// These requests have completed, or others that look alike.
    Unknown(Vec<usize>),
}

/// The result of a flush request, and when it was issued, in ns.
type Flush = (usize, u64);

/// A completed flush request, until the CPU does something other than completing the requests that
/// it served.
#[derive(Debug)]
struct Ended {
    cpu: u32,
    pid: u32,
    dev: Dev,
    flush: Flush,
    /// The sectors of the requests completed after it.
    served: Vec<u64>,
    /// The error of these requests, if the flush request itself had none: 0 or a negative errno.
    error: i32,
}

#[derive(Debug, Default)]
pub(in crate::follow) struct Flushes {
    /// The waiting requests in the order of their arrival: the running list, then the pending list.
    waiting: HashMap<Dev, Vec<Waiting>>,
    /// Completed flushes in the order of their end: until what they served is known, at most one
    /// per CPU, and all of each device, with the time of the end in ns.
    ended: Vec<Ended>,
    all: HashMap<Dev, Vec<(Flush, u64)>>,
    /// The CPUs that completed data of a sequence without a flush after it. They complete the
    /// sequence next.
    closing: Vec<(u32, Dev)>,
}

impl Flushes {
    /// Adds a request that waits for a flush. Without data, it will never be issued.
    pub fn wait(&mut self, event: &Event, sectors: [u64; 2], asker: Request, shares: Vec<Share>) {
        let (cpu, since_ns, dev) = (event.cpu, event.time_ns, asker.dev);
        let waiting = Waiting { cpu, since_ns, sectors, asker, shares };
        self.waiting.entry(dev).or_default().push(waiting);
    }

    /// Records a completed request. After a flush, the requests that it served complete next.
    pub fn note_end(&mut self, request: usize, event: &Event, sink: &Sink) {
        let is_flush = |of: &&Request| of.op.kind == OpKind::Flush;
        let Some(flush) = sink.results.request(request).filter(is_flush) else { return };
        let Some(issued_ns) = flush.marks.get(Mark::Issued) else { return };
        let (dev, cpu, pid) = (flush.dev, event.cpu, event.pid);
        let (flush, served) = ((request, issued_ns), Vec::new());
        self.all.entry(dev).or_default().push((flush, event.time_ns));
        self.ended.retain(|ended| ended.cpu != cpu);
        self.ended.push(Ended { cpu, pid, dev, flush, served, error: 0 });
    }

    /// The flushes of a device that were issued since a moment, and have completed.
    pub fn since(&self, dev: Dev, ns: u64) -> Vec<usize> {
        let all = self.all.get(&dev).into_iter().flatten().rev();
        let ended = all.take_while(|(_, ended_ns)| *ended_ns >= ns);
        ended.filter(|((_, issued_ns), _)| *issued_ns >= ns).map(|((flush, _), _)| *flush).collect()
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
        let (dev, end) = (data.dev, data.sector.wrapping_add(data.bytes >> 9));
        // After an error no flush follows.
        if !postflush || data.error != 0 {
            self.closing.push((event.cpu, dev));
            return;
        }
        self.wait(event, [data.sector, end], data.clone(), shares.to_vec());
        // The next flush also serves their tasks.
        shares.iter().for_each(|share| sink.hold(share.task));
    }

    /// Handles a completion without sectors: a request that waited for a flush, or the end of a
    /// sequence.
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

    /// Finds the requests that the last flush on this CPU served, once all have completed. It must
    /// be called before each event.
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
        // Requests that completed before it on this device were served before it.
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

    /// Records that the requests at `served` completed after `flush`; `None` is an unknown flush.
    fn serve(&mut self, dev: Dev, served: &[u64], flush: Option<Flush>, sink: &mut Sink) {
        let waiting = self.waiting.entry(dev).or_default();
        let issued_ns = flush.map_or(u64::MAX, |(_, issued_ns)| issued_ns);
        let running = waiting.partition_point(|one| one.since_ns <= issued_ns);
        let (found, flush) = match judge(&waiting[..running], served) {
            Verdict::Served(found) => (found, flush.map(|(flush, _)| flush)),
            Verdict::Unknown(found) => (found, None),
        };
        let places = waiting.drain(..running).enumerate();
        let (ended, left): (Vec<_>, Vec<_>) = places.partition(|(at, _)| found.contains(at));
        for (_, one) in left.iter().filter(|_| flush.is_none()) {
            one.shares.iter().for_each(|share| sink.invalidate(share.task));
        }
        waiting.splice(..0, left.into_iter().map(|(_, one)| one));
        ended.iter().for_each(|(_, one)| serve_shares(flush, &one.shares, &one.asker, sink));
    }
}

/// The requests on `running` that completed, if a series of completions has the sectors `served`.
fn judge(running: &[Waiting], served: &[u64]) -> Verdict {
    let shows =
        |sector: u64| (0..running.len()).filter(move |at| running[*at].sectors.contains(&sector));
    let is_served = |one: &Waiting| served.iter().any(|sector| one.sectors.contains(sector));
    let all_fit = running.iter().all(is_served) && served.iter().all(|at| shows(*at).count() > 0);
    if served.len() == running.len() && all_fit {
        return Verdict::Served((0..running.len()).collect());
    }
    let mut found = Vec::new();
    for sector in served {
        let first = shows(*sector).find(|at| !found.contains(at));
        found.extend(first);
    }
    // Requests of one CPU belong to one queue, which completes the oldest first.
    let mut empty = running.iter().filter(|one| one.asker.bytes == 0).map(|one| one.cpu);
    let one_queue = empty.next().is_none_or(|cpu| empty.all(|other| other == cpu));
    let is_clear = |sector: &u64| {
        shows(*sector).all(|at| found.contains(&at))
            || one_queue && shows(*sector).all(|at| running[at].asker.bytes == 0)
    };
    if found.len() == served.len() && served.iter().all(is_clear) {
        return Verdict::Served(found);
    }
    Verdict::Unknown(found)
}

/// Adds `flush` to these shares; with `None`, their flush is unknown.
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

/// Adds `flush` to the share of `asker`.
pub(super) fn link(flush: usize, share: &Share, asker: &Request, sink: &mut Sink) {
    let first = attach(&mut sink.results, flush, share, asker);
    sink.add(share, flush, first);
}

/// Attaches a share to a flush request. A flush request has no bio; the requests that it served
/// replace it. Returns whether this is its first share.
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
