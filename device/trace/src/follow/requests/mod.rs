// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows requests from the allocation of a tag to their completion. `follow` calls one function
//! per block event, which finds the request and updates it.
//!
//! `table` finds a request (`open`) by its sector, and `ambiguous` checks that an event can belong
//! to only one. `commands` matches the drivers' commands, and `flushes` matches flushes with the
//! requests that wait for them.

mod ambiguous;
mod commands;
mod flushes;
mod open;
mod ranges;
mod table;

use std::collections::HashMap;

use super::bios::{Bio, Bios, StartSector};
use super::sink::{Ambiguity, Sink};
use crate::event::{Dev, Event, Extent, Kind, Op, OpKind};
use crate::io::{Mark, Request};
use ambiguous::OpenRequests;
use commands::Commands;
use flushes::Flushes;
pub(super) use open::Side;
use open::{NOWHERE, Open, Slot, place};

const NOT_ISSUED: &str = "completed, but was never issued to the driver";

#[derive(Debug, Default)]
pub(super) struct Requests {
    pub open: OpenRequests,
    pub flushes: Flushes,
    pub commands: Commands,
    /// Requests of which only issue and completion were seen, with the reason, and whether it was
    /// their merges that were not seen.
    without_beginning: Vec<(usize, Ambiguity, bool)>,
    /// The last of these, with its state at that time and its result. If a rest is requeued, it was
    /// a piece.
    last_without_beginning: Option<((Dev, u64, Op), usize)>,
    /// The last matched request at each place where one began, or where its last completion did,
    /// with the sectors of that.
    ended_at: HashMap<(StartSector, u32, OpKind), usize>,
}

impl Requests {
    /// A bio is merged at the back or front of a request.
    pub fn merge(&mut self, bio: Bio, extent: &Extent, side: Side, sink: &mut Sink) {
        let Some(slot) = self.open.one_beside(extent, side) else {
            return sink.drop_share(&bio.share);
        };
        self.open.change(slot, |open| {
            if side == Side::Front {
                open.sector = extent.sector;
            }
            open.take_in(extent.sectors, bio.request, [bio.share]);
        });
    }

    /// A request is merged into the one before it, with all its bios.
    pub fn merge_requests(&mut self, extent: &Extent, sink: &mut Sink) {
        let same = |open: &Open| !open.started && open.left == extent.sectors;
        let next = self.open.one_waiting_at(extent, same).first().copied();
        let next = next.map_or(self.open.unseen(extent), |slot| self.open.take(slot));
        let Some(before) = self.open.one_beside(extent, Side::Back) else {
            return next.shares.iter().for_each(|share| sink.drop_share(share));
        };
        self.open.change(before, |open| open.take_in(next.left, next.request, next.shares));
        if let Some(ambiguity) = next.ambiguity {
            self.open.suspect(before, ambiguity);
        }
    }

    /// A request is allocated for the bio.
    pub fn allocate(&mut self, event: &Event, extent: &Extent, bio: Bio) {
        self.open.allocating.insert(extent.dev);
        let mut open = Open::from_bio(bio, extent);
        open.request.marks.set(Mark::GotRequest, event.time_ns);
        if extent.sectors == 0 && extent.op.kind != OpKind::Other {
            return self.flushes.wait(event, [extent.sector; 2], open.request, open.shares);
        }
        open.awaits_flush = extent.op.preflush;
        self.open.table.insert(open);
    }

    /// A request is inserted into the scheduler, for the first time or after a requeue.
    pub fn insert(&mut self, event: &Event, extent: &Extent, bios: &mut Bios, sink: &mut Sink) {
        let slots = self.open.table.waiting(extent, |open| !open.inserted);
        // Its thread inserts a request, unless it was requeued.
        let slots = self.open.only(slots, |open| open.request.pid == event.pid);
        self.open.mark_ambiguous(&slots, extent);
        let slot = match slots[..] {
            [] => self.begin_inserted(extent, bios, sink),
            [slot] => slot,
            // It stays unknown which one was inserted. No result depends on it.
            _ => return,
        };
        self.open.change(slot, |open| {
            let request = &mut open.request;
            if request.marks.get(Mark::Inserted).is_none() && !open.started {
                request.marks.set(Mark::Inserted, event.time_ns);
            }
            request.priority = request.priority.or(extent.priority);
            open.left = open.left.max(extent.sectors);
            open.inserted = true;
        });
    }

    /// Creates a request whose allocation was not seen.
    fn begin(&mut self, extent: &Extent, bios: &mut Bios, sink: &mut Sink) -> Slot {
        let of_bio = bios.take_only(extent, sink);
        let of_bio = of_bio.map(|bio| Open { bio_by_place: true, ..Open::from_bio(bio, extent) });
        let known = of_bio.or_else(|| self.grown(extent, bios, sink));
        self.open.table.insert(known.unwrap_or_else(|| Open::new(extent)))
    }

    /// The request that grew to `extent` by merges, if merges have no events: of the waiting
    /// requests and bios within it, which then have exactly its size.
    fn grown(&mut self, extent: &Extent, bios: &mut Bios, sink: &mut Sink) -> Option<Open> {
        if sees_merges(sink) || !sink.seen.has(Kind::GetRequest) {
            return None;
        }
        let mut parts = self.take_within(extent).into_iter();
        let mut first = parts.next()?;
        parts.for_each(|part| first.take_in(part.left, part.request, part.shares));
        let growth = extent.sectors.saturating_sub(first.left);
        let more = bios.take_parts(extent, growth);
        if first.left > extent.sectors || growth > 0 && more.is_empty() {
            first.shares.iter().for_each(|share| sink.drop_share(share));
            return None;
        }
        let parts = more.into_iter();
        parts.for_each(|bio| first.take_in(bio.extent.sectors, bio.request, [bio.share]));
        (first.sector, first.grown) = (extent.sector, true);
        Some(first)
    }

    /// Takes the waiting requests that lie within an unknown one. Merges without an event made them
    /// parts of it, so they are never issued.
    fn take_within(&mut self, extent: &Extent) -> Vec<Open> {
        if extent.op.kind == OpKind::Discard || place(extent).1 == NOWHERE {
            return Vec::new();
        }
        let waits = |open: &Open| !open.started && open.ambiguity.is_none();
        let within = self.open.table.within(extent, waits);
        within.into_iter().map(|slot| self.open.take(slot)).collect()
    }

    /// Without allocations: drops the requests that lie within an unknown one that is issued.
    fn drop_grown(&mut self, extent: &Extent, sink: &mut Sink) {
        if !sink.seen.has(Kind::GetRequest) {
            let parts = self.take_within(extent);
            parts.iter().flat_map(|open| &open.shares).for_each(|share| sink.drop_share(share));
        }
    }

    /// Creates a request that is inserted. With another one in the scheduler at that sector, neither
    /// can be followed.
    fn begin_inserted(&mut self, extent: &Extent, bios: &mut Bios, sink: &mut Sink) -> Slot {
        let mut alike = self.open.table.waiting(extent, |open| open.inserted);
        let slot = self.begin(extent, bios, sink);
        // It may have grown over them, unseen, and have the slot of one of them.
        alike.retain(|other| *other != slot && self.open.table.all.contains(*other));
        if !alike.is_empty() {
            alike.push(slot);
            self.open.suspect_all(&alike);
        }
        slot
    }

    /// A request is issued to the driver.
    pub fn issue(&mut self, event: &Event, extent: &Extent, bios: &mut Bios, sink: &mut Sink) {
        let is_discard = extent.op.kind == OpKind::Discard;
        let may_be_again = self.open.forget_flush(event, extent, sink);
        let fits = |open: &Open| open.left >= extent.sectors || is_discard;
        let slots = self.open.one_waiting_at(extent, fits);
        let known = self.open.closest(&slots, extent.sectors);
        // A device with several queues has several flushes in flight.
        if known.is_none() && extent.op.kind != OpKind::Flush && !sink.seen.issued_again {
            let again =
                |open: &Open| open.dispatch.is_some() && open.dispatch_left == extent.sectors;
            sink.seen.issued_again = !self.open.table.beginning(extent, again).is_empty();
        }
        let slot = known.unwrap_or_else(|| {
            self.drop_grown(extent, sink);
            self.begin(extent, bios, sink)
        });
        if may_be_again {
            self.open.suspect(slot, Ambiguity::Loss);
        }
        let flushes = &self.flushes;
        self.open.change(slot, |open| {
            if is_discard {
                // Bios are merged without an event if a device takes several ranges in one command.
                // If the waiting bios have exactly the size by which the request grew, they belong
                // to it.
                let grown = extent.sectors.saturating_sub(open.left);
                for bio in bios.take_discards(extent.dev, grown) {
                    open.take_in(bio.extent.sectors, bio.request, [bio.share]);
                }
            }
            open.issue(event, extent);
            open.settle_flush(flushes, sink);
        });
        self.commands.note_issue(slot, extent.dev, event, &mut self.open.table);
    }

    /// The driver requeues a request, or its rest is requeued after a piece.
    pub fn requeue(&mut self, event: &Event, extent: &Extent, sink: &mut Sink) {
        // If a request was first seen at its issue, only a piece may be known.
        let fits = |open: &Open| {
            open.left == extent.sectors || open.bio_op.is_none() && open.left < extent.sectors
        };
        let slots = self.open.table.beginning(extent, fits);
        let Some(slot) = self.open.one_of(slots, extent).first().copied() else {
            return self.take_back_piece(extent, sink);
        };
        self.open.change(slot, |open| {
            open.left = open.left.max(extent.sectors);
            open.requeue(event.time_ns);
        });
    }

    /// Some or all sectors of a request have completed.
    pub fn complete(&mut self, event: &Event, extent: &Extent, error: i32, sink: &mut Sink) {
        let (_, sector) = place(extent);
        if extent.sectors == 0 && sector != NOWHERE && extent.op.kind != OpKind::Other {
            return self.flushes.end_sequence(event, extent, error, sink);
        }
        // Passthrough requests complete at sector -1, with any number of sectors.
        let whole = sector == NOWHERE;
        let left = |open: &Open| open.dispatch.map_or(open.left, |_| open.dispatch_left);
        let ends = |open: &Open| whole || left(open) >= extent.sectors;
        let issued = |open: &Open| ends(open) && (open.dispatch.is_some() || open.parted);
        let slots = self.open.one_done_at(extent, issued);
        let known = self.open.closest(&slots, extent.sectors);
        let slot = known.or_else(|| self.unissued(extent, ends));
        let Some(slot) = slot else { return self.complete_unseen(event, extent, sink) };
        self.open.change(slot, |open| open.complete(event.time_ns, extent.sectors, error));
        if self.open.table.all[slot].left == 0 {
            self.finish_request(slot, event, extent, sink);
        }
    }

    /// A request completes of which nothing else was seen. If it was in flight before the trace, the
    /// last completion at its place may be its own. After a loss, its beginning may be lost.
    fn complete_unseen(&mut self, event: &Event, extent: &Extent, sink: &mut Sink) {
        let ambiguity = self.open.absence;
        let last = self.ended_at.remove(&(place(extent), extent.sectors, extent.op.kind));
        let last = last.filter(|_| ambiguity == Ambiguity::Edge);
        let last = last.and_then(|index| sink.results.requests[index].take());
        for request in last.into_iter().chain([Open::new(extent).as_seen()]) {
            sink.results.count_ambiguous(ambiguity, &request, event.time_ns);
        }
    }

    /// The request of a completion without an issue: rejected by the driver, or begun before the
    /// trace.
    fn unissued(&mut self, extent: &Extent, ends: impl Fn(&Open) -> bool) -> Option<Slot> {
        let waiting = self.open.table.beginning(extent, ends);
        match waiting[..] {
            [] => {}
            [slot] => _ = self.open.suspect(slot, Ambiguity::Odd(NOT_ISSUED)),
            _ => self.open.suspect_all(&waiting),
        }
        self.open.closest(&waiting, extent.sectors)
    }

    /// A whole request has completed, with `extent` as the last part.
    fn finish_request(&mut self, slot: Slot, event: &Event, extent: &Extent, sink: &mut Sink) {
        let mut open = self.open.take(slot);
        if let Some(command) = open.command {
            self.commands.release(slot, command);
        }
        let shares = std::mem::take(&mut open.shares);
        if let Some(ambiguity) = open.ambiguity {
            sink.results.count_ambiguous(ambiguity, &open.as_seen(), event.time_ns);
            return shares.iter().for_each(|share| sink.drop_share(share));
        }
        open.shares.extend(shares.first());
        let without_beginning = open.has_no_beginning() || open.bio_by_place;
        let grown = open.grown;
        let after = (open.request.dev, open.sector, open.request.op);
        let sequence = open.sequence();
        let flush = open.flush;
        let index = sink.results.requests.len();
        for (dev, sector) in [(open.request.dev, open.first_sector()), place(extent)] {
            self.ended_at.insert(((dev, sector), extent.sectors, extent.op.kind), index);
        }
        sink.results.requests.push(Some(open.into_request()));
        self.last_without_beginning = without_beginning.then_some((after, index));
        if without_beginning || grown {
            self.without_beginning.push((index, self.open.absence, !without_beginning));
        }
        for (nth, share) in shares.iter().enumerate() {
            sink.add(share, index, nth == 0);
        }
        if let Some(postflush) = sequence {
            self.flushes.begin_sequence(index, postflush, &shares, event, sink);
        }
        if let (Some(flush), Some(share)) = (flush, shares.first()) {
            let asker = sink.results.request(index).cloned().unwrap_or_default();
            flushes::link(flush, share, &asker, sink);
        }
        self.flushes.note_end(index, event, sink);
        shares.iter().for_each(|share| sink.release(share.task));
    }

    /// The rest of an unknown request is requeued. Its piece was taken for a completed request, or
    /// it began before the trace.
    fn take_back_piece(&mut self, extent: &Extent, sink: &mut Sink) {
        let rest_of = (extent.dev, extent.sector, extent.op);
        let last = self.last_without_beginning.take();
        if let Some((_, index)) = last.filter(|(after, _)| *after == rest_of) {
            sink.results.requests[index] = None;
        }
        self.open.table.insert(self.open.unseen(extent));
    }

    /// Events were lost. Open requests may have changed unseen.
    pub fn lose_sight(&mut self) {
        // A completion without its request may have lost it now.
        self.ended_at.clear();
        self.flushes = Flushes::default();
        self.commands.forget();
        self.open.lose_sight();
    }

    /// Ends the trace. Open requests are at its edge. So are requests without a beginning on
    /// devices where others have one, because earlier issues of them may be missing.
    pub fn finish(self, sink: &mut Sink) {
        let merges = sees_merges(sink);
        for (index, ambiguity, grown) in self.without_beginning {
            let dev = sink.results.request(index).map(|request| request.dev);
            let others_have_one = dev.is_some_and(|dev| self.open.allocating.contains(&dev));
            if others_have_one && (merges || !grown) {
                sink.results.requests[index] = None;
                sink.results.count_ambiguous(ambiguity, &Request::default(), 0);
            }
        }
        for (_, open) in self.open.table.all {
            let ambiguity = open.ambiguity.unwrap_or(Ambiguity::Edge);
            let last_ns = open.request.marks.0.into_iter().flatten().max();
            sink.results.count_ambiguous(ambiguity, &open.as_seen(), last_ns.unwrap_or(0));
        }
    }
}

fn sees_merges(sink: &Sink) -> bool {
    let merges = [Kind::BackMerge, Kind::FrontMerge, Kind::RequestMerge];
    merges.into_iter().any(|kind| sink.seen.has(kind))
}
