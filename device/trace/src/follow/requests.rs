// SPDX-License-Identifier: MIT OR Apache-2.0
//! One function per block event: what it says about which bio or request.

use super::super::event::{Event, Extent, OpKind};
use super::super::io::Mark;
use super::Follower;
use super::doubt::Match;
use super::open::{Doubt, NOWHERE, Open, RequestNumber, RequestState, add_new, place};

const NOT_ISSUED: &str = "completed, but was never issued to the driver";

/// Where a merged bio goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Back,
    Front,
}

impl Follower {
    fn is_followed(&self, extent: &Extent) -> bool {
        self.options.dev.is_none_or(|dev| dev == extent.dev)
    }

    /// A bio is appended to a request, or put before it.
    pub(super) fn merge(&mut self, event: &Event, extent: &Extent, side: Side) {
        let bio = self.take_bio(event, extent);
        if !self.is_followed(extent) {
            return self.pass_over(&bio);
        }
        let sectors = u64::from(extent.sectors);
        let kind = extent.op.kind;
        let fits = |open: &Open| open.op.kind == kind && !open.started;
        // What it is merged with is beside it.
        let beside = match side {
            Side::Back => extent.sector.wrapping_sub(1),
            Side::Front => extent.sector.wrapping_add(sectors),
        };
        let beside = Extent { sector: beside, sectors: 1, ..*extent };
        let slots = match side {
            Side::Back => self.table.ending((extent.dev, extent.sector), fits),
            Side::Front => self.table.beginning((extent.dev, extent.sector + sectors), fits),
        };
        let slot = match self.one_of(slots, &beside) {
            Match::None => return self.drop_bio(&bio),
            Match::One(slot) => slot,
            Match::Several(slots) => slots[0],
        };
        self.table.change(slot, |open| {
            open.left = open.left.saturating_add(extent.sectors);
            if side == Side::Front {
                open.sector = extent.sector;
            }
            open.merged_queued_ns.extend(bio.queued_ns);
            open.shares.push(bio.share);
            add_new(&mut open.through, &bio.through);
        });
    }

    /// A request is appended to the one before it, with all its bios.
    pub(super) fn merge_requests(&mut self, extent: &Extent) {
        let waiting = |open: &Open| open.op.kind == extent.op.kind && !open.started;
        let same = |open: &Open| waiting(open) && open.left == extent.sectors;
        let next = self.table.beginning(place(extent), same);
        let next = match self.one_of(next, extent) {
            Match::None => None,
            Match::One(slot) => Some(slot),
            Match::Several(slots) => Some(slots[0]),
        };
        let next = next.and_then(|slot| self.take_request(slot)).unwrap_or_else(|| {
            let doubt = Some(self.absence());
            Open { doubt, ..Open::new(extent) }
        });
        let before = self.table.ending((extent.dev, extent.sector), waiting);
        let beside = Extent { sector: extent.sector.wrapping_sub(1), sectors: 1, ..*extent };
        let before = match self.one_of(before, &beside) {
            Match::None => {
                return next.shares.iter().for_each(|share| self.drop_share(share));
            }
            Match::One(slot) => slot,
            Match::Several(slots) => slots[0],
        };
        self.table.change(before, |open| {
            open.left = open.left.saturating_add(next.left);
            open.merged_queued_ns.extend(next.marks.get(Mark::Queued));
            open.merged_queued_ns.extend(next.merged_queued_ns);
            open.shares.extend(next.shares);
            add_new(&mut open.through, &next.through);
        });
        if let Some(doubt) = next.doubt {
            self.suspect(before, doubt);
        }
    }

    /// A request is allocated for the bio.
    pub(super) fn get_request(&mut self, event: &Event, extent: &Extent) {
        let bio = self.take_bio(event, extent);
        if !self.is_followed(extent) {
            return self.pass_over(&bio);
        }
        if !self.giving.contains(&extent.dev) {
            self.giving.push(extent.dev);
        }
        if extent.sectors == 0 && extent.op.kind != OpKind::Other {
            return self.await_flush(event, bio);
        }
        let mut open = Open::from_bio(bio, extent);
        open.marks.set(Mark::GotRequest, event.time_ns);
        let slot = self.table.insert(open);
        if extent.op.preflush {
            self.await_preflush(extent.dev, slot);
        }
    }

    /// It is inserted into the scheduler: for the first time, or again after a requeue.
    pub(super) fn insert(&mut self, event: &Event, extent: &Extent) {
        if !self.is_followed(extent) {
            return;
        }
        let fits =
            |open: &Open| open.op.kind == extent.op.kind && open.stage != RequestState::Issued;
        let mut slots = self.table.beginning(place(extent), fits);
        if slots.len() > 1 {
            // A request is inserted by its thread, unless it was requeued.
            let own = |slot: &RequestNumber| {
                self.table.get(*slot).is_some_and(|open| open.pid == event.pid)
            };
            let mine: Vec<RequestNumber> = slots.iter().copied().filter(own).collect();
            if mine.len() == 1 {
                slots = mine;
            }
        }
        self.doubt_blurred(&slots, extent);
        let slot = match slots[..] {
            [] => match self.unattached(extent) {
                Some(bio) => self.table.insert(Open::from_bio(bio, extent)),
                None => self.table.insert(Open::new(extent)),
            },
            [slot] => slot,
            // It stays unknown which one was inserted; nothing else depends on it.
            _ => return,
        };
        self.table.change(slot, |open| {
            if open.marks.get(Mark::Inserted).is_none() && !open.started {
                open.marks.set(Mark::Inserted, event.time_ns);
            }
            open.left = open.left.max(extent.sectors);
            open.priority = open.priority.or(extent.priority);
        });
    }

    /// The next issue is of a piece: so large is the whole.
    pub(super) fn cut_piece(&mut self, piece: &Extent, rest_bytes: u32) {
        let fits =
            |open: &Open| open.op.kind == piece.op.kind && open.stage != RequestState::Issued;
        let slots = self.table.beginning(place(piece), fits);
        self.doubt_blurred(&slots, piece);
        if let [slot] = slots[..] {
            let whole = piece.sectors.saturating_add(rest_bytes >> 9);
            self.table.change(slot, |open| open.left = open.left.max(whole));
        }
    }

    /// It is issued to the driver.
    pub(super) fn issue(&mut self, event: &Event, extent: &Extent) {
        if !self.is_followed(extent) {
            return;
        }
        let fits = |open: &Open| {
            open.stage != RequestState::Issued
                && open.op.kind == extent.op.kind
                && (open.left >= extent.sectors || extent.op.kind == OpKind::Discard)
        };
        let may_be_again = self.forget_flush(event, extent);
        let slots = self.table.beginning(place(extent), fits);
        let slot = match self.one_of(slots, extent) {
            Match::One(slot) => slot,
            Match::Several(slots) => self.closest(&slots, extent.sectors),
            Match::None => match self.unattached(extent) {
                Some(bio) => self.table.insert(Open::from_bio(bio, extent)),
                None => self.table.insert(Open::new(extent)),
            },
        };
        if may_be_again {
            self.suspect(slot, Doubt::Loss);
        }
        self.join_discards(slot, extent);
        self.table.change(slot, |open| open.issue(event, extent));
        self.settle_preflush(extent.dev, slot);
        self.note_issue(slot, extent.dev, event);
    }

    /// The driver requeues it, or the rest of it is requeued after a piece.
    pub(super) fn requeue(&mut self, event: &Event, extent: &Extent) {
        self.hardware.requeued(event.cpu);
        if !self.is_followed(extent) {
            return;
        }
        // Of one that was first seen at its issue, a piece may be all that is known.
        let fits = |open: &Open| {
            let grown = open.bio_op.is_none() && open.left < extent.sectors;
            open.op.kind == extent.op.kind && (open.left == extent.sectors || grown)
        };
        let slots = self.table.beginning(place(extent), fits);
        let slot = match self.one_of(slots, extent) {
            Match::None => return self.take_back_piece(extent),
            Match::One(slot) => slot,
            Match::Several(slots) => slots[0],
        };
        self.table.change(slot, |open| {
            open.left = open.left.max(extent.sectors);
            open.requeue(event.time_ns);
        });
    }

    /// So much of it has completed.
    pub(super) fn complete(&mut self, event: &Event, extent: &Extent, error: i32) {
        if !self.is_followed(extent) {
            return;
        }
        let (dev, sector) = place(extent);
        if extent.sectors == 0 && sector != NOWHERE && extent.op.kind != OpKind::Other {
            return self.end_sequence(event, extent);
        }
        // Passthrough requests complete at sector -1, whatever they moved.
        let whole = sector == NOWHERE;
        let ends = |open: &Open| {
            let left = open.stay.map_or(open.left, |stay| stay.left);
            open.op.kind == extent.op.kind && (whole || left >= extent.sectors)
        };
        let issued = |open: &Open| ends(open) && open.stage != RequestState::Waiting;
        let slots = self.table.beginning((dev, sector), issued);
        match self.one_of(slots, extent) {
            Match::One(slot) => self.progress(slot, event, extent, error),
            Match::Several(slots) => {
                let slot = self.closest(&slots, extent.sectors);
                self.progress(slot, event, extent, error);
            }
            Match::None => self.end_unissued(event, extent, error, ends),
        }
    }

    /// The completion of a request without an issue: refused by the driver, or begun before the trace.
    fn end_unissued(
        &mut self,
        event: &Event,
        extent: &Extent,
        error: i32,
        ends: impl Fn(&Open) -> bool,
    ) {
        let waiting = self.table.beginning(place(extent), ends);
        match waiting[..] {
            [] => {
                let open = Open::new(extent);
                self.results.count_doubt(self.absence(), &open, event.time_ns);
            }
            [slot] => {
                self.suspect(slot, Doubt::Odd(NOT_ISSUED));
                self.progress(slot, event, extent, error);
            }
            _ => {
                self.suspect_all(&waiting);
                self.progress(self.closest(&waiting, extent.sectors), event, extent, error);
            }
        }
    }

    /// Why an event is missing.
    pub(super) fn absence(&self) -> Doubt {
        if self.seen.loss { Doubt::Loss } else { Doubt::Edge }
    }

    fn progress(&mut self, slot: RequestNumber, event: &Event, extent: &Extent, error: i32) {
        self.table.change(slot, |open| open.complete(event.time_ns, extent.sectors, error));
        if self.table.get(slot).is_some_and(|open| open.left == 0) {
            self.finish_request(slot, event);
        }
    }

    /// All of it has completed.
    fn finish_request(&mut self, slot: RequestNumber, event: &Event) {
        let Some(mut open) = self.take_request(slot) else { return };
        if let Some(command) = open.command {
            self.hardware.release(slot, command);
        }
        let shares = std::mem::take(&mut open.shares);
        if let Some(doubt) = open.doubt {
            self.results.count_doubt(doubt, &open, event.time_ns);
            return shares.iter().for_each(|share| self.drop_share(share));
        }
        open.shares.extend(shares.first());
        let bare = open.is_bare();
        let after = (open.dev, open.sector, open.op);
        let sequence = open.sequence();
        let flush = open.flushes.first().copied();
        let index = self.results.push_request(open.into_request());
        self.last_bare = bare.then_some((after, index));
        if bare {
            self.bare.push((index, self.absence()));
        }
        for (nth, share) in shares.iter().enumerate() {
            self.tasks.add(share, index, nth == 0);
        }
        if let Some(sequence) = sequence {
            self.begin_sequence(index, sequence, &shares, event);
        }
        if let (Some(flush), Some(share)) = (flush, shares.first()) {
            self.link_flush(flush, share, index);
        }
        self.note_flush(index, event);
        for share in &shares {
            self.tasks.release(share.task, &mut self.results);
        }
    }

    /// The rest of an unknown request is requeued: it was taken for one that had completed, or began before the
    /// trace.
    fn take_back_piece(&mut self, extent: &Extent) {
        let rest_of = (extent.dev, extent.sector, extent.op);
        if let Some((_, index)) = self.last_bare.take().filter(|(after, _)| *after == rest_of) {
            self.results.take_request(index);
        }
        let mut open = Open::new(extent);
        open.suspect(self.absence());
        self.table.insert(open);
    }
}
