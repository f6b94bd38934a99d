// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open request, between the allocation of its tag and its completion. Each event updates it;
//! `requests` calls these methods.

use super::flushes::Flushes;
use crate::event::{Driver, Event, Extent, Op, OpKind};
use crate::follow::bios::{Bio, StartSector, add_new};
use crate::follow::sink::{Ambiguity, Share, Sink};
use crate::io::{Mark, Origin, Piece, Request};

/// The place of requests without a sector.
pub(in crate::follow) const NOWHERE: u64 = u64::MAX;

/// The index of an open request in the table. It is reused after the completion.
pub(in crate::follow) type Slot = usize;

/// A command in flight.
pub(in crate::follow) type CommandKey = (Driver, u64);

/// The front or back end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::follow) enum Side {
    Front,
    Back,
}

#[derive(Clone, Debug, Default)]
pub(in crate::follow) struct Open {
    /// The known values. Sector and bytes are valid once it was issued.
    pub request: Request,
    /// Its present first sector.
    pub sector: u64,
    /// The number of sectors that have not completed.
    pub left: u32,
    /// The operation of the bio, with the flags that the flush machinery removes; `None` if no
    /// event showed the bio.
    pub bio_op: Option<Op>,
    /// Whether its bio was found by its place alone, because no event showed the allocation.
    pub bio_by_place: bool,
    /// Whether it grew by merges that no event showed.
    pub grown: bool,
    /// Whether a part has completed and the rest waits for its requeue.
    pub parted: bool,
    /// Whether it is in the scheduler, so it is not inserted again before an issue or a requeue.
    pub inserted: bool,
    /// Whether it was issued at least once; then it can no longer be merged.
    pub started: bool,
    /// The present dispatch, while in flight.
    pub dispatch: Option<Piece>,
    /// The number of sectors of the dispatch that have not completed.
    pub dispatch_left: u32,
    /// The driver's command for it, while in flight.
    pub command: Option<CommandKey>,
    /// One share per bio; that of the first bio comes first.
    pub shares: Vec<Share>,
    /// Whether a flush must precede it.
    pub awaits_flush: bool,
    /// The flush that preceded it, if known.
    pub flush: Option<usize>,
    /// The first one, but a loss replaces it.
    pub ambiguity: Option<Ambiguity>,
}

impl Open {
    /// A request of which only `extent` is known.
    pub fn new(extent: &Extent) -> Open {
        let Extent { dev, op, priority, .. } = *extent;
        let request = Request { dev, op, priority, ..Request::default() };
        let (_, sector) = place(extent);
        Open { request, sector, left: extent.sectors, ..Open::default() }
    }

    /// Its first sector at its first issue; until then, the present one.
    pub fn first_sector(&self) -> u64 {
        if self.started { self.request.sector } else { self.sector }
    }

    /// The request as far as it was seen, at its first sector.
    pub fn as_seen(&self) -> Request {
        Request { sector: self.first_sector(), ..self.request.clone() }
    }

    /// The request that `bio` got.
    pub fn from_bio(bio: Bio, extent: &Extent) -> Open {
        let Extent { dev, op, .. } = *extent;
        let priority = extent.priority.or(bio.extent.priority);
        let request = Request { dev, op, priority, ..bio.request };
        let (bio_op, shares) = (Some(bio.extent.op), vec![bio.share]);
        Open { request, bio_op, shares, ..Open::new(extent) }
    }

    /// Merges `sectors` more: a further bio, or another request with all its bios.
    pub fn take_in(
        &mut self,
        sectors: u32,
        more: Request,
        shares: impl IntoIterator<Item = Share>,
    ) {
        self.left = self.left.saturating_add(sectors);
        self.request.merged_queued_ns.extend(more.marks.get(Mark::Queued));
        self.request.merged_queued_ns.extend(more.merged_queued_ns);
        add_new(&mut self.request.through, &more.through);
        self.shares.extend(shares);
    }

    /// Ends the wait for a flush. The flush that served it is known only if there is one candidate:
    /// one that was issued after it was allocated, and has completed.
    pub fn settle_flush(&mut self, flushes: &Flushes, sink: &mut Sink) {
        if !std::mem::take(&mut self.awaits_flush) {
            return;
        }
        let got_ns = self.request.marks.get(Mark::GotRequest).unwrap_or(u64::MAX);
        match flushes.since(self.request.dev, got_ns)[..] {
            [flush] => self.flush = Some(flush),
            _ => self.shares.iter().for_each(|share| sink.invalidate(share.task)),
        }
    }

    /// Whether its bio was not seen, although such a request has one.
    pub fn has_no_beginning(&self) -> bool {
        self.bio_op.is_none() && self.request.op.kind != OpKind::Flush && self.sector != NOWHERE
    }

    /// Records that it, or a piece of it, was issued.
    pub fn issue(&mut self, event: &Event, extent: &Extent) {
        (self.parted, self.inserted) = (false, false);
        self.left = self.left.max(extent.sectors);
        if !self.started {
            self.started = true;
            let request = &mut self.request;
            request.marks.set(Mark::Issued, event.time_ns);
            request.op = extent.op;
            request.priority = extent.priority.or(request.priority);
            (request.sector, request.bytes) = (extent.sector, u64::from(self.left) << 9);
        }
        let (issued_ns, ended_ns, sector) = (event.time_ns, event.time_ns, extent.sector);
        self.dispatch = Some(Piece { issued_ns, ended_ns, sector, ..Piece::default() });
        self.dispatch_left = extent.sectors;
    }

    /// Records that the driver requeued it, or that its rest was requeued after a piece.
    pub fn requeue(&mut self, time_ns: u64) {
        let mut dispatch = self.dispatch.take();
        // Nothing of this dispatch has completed, or the driver was busy before the issue.
        if dispatch.map_or(!self.parted, |piece| piece.bytes == 0) {
            self.request.requeues += 1;
            dispatch.iter_mut().for_each(|piece| piece.ended_ns = time_ns);
        }
        self.request.pieces.extend(dispatch);
        (self.parted, self.inserted) = (false, false);
    }

    /// Records that `sectors` of it completed.
    pub fn complete(&mut self, time_ns: u64, sectors: u32, error: i32) {
        if self.request.error == 0 {
            self.request.error = error;
        }
        self.request.marks.set(Mark::Completed, time_ns);
        if self.sector == NOWHERE {
            self.left = 0;
        } else {
            self.sector = self.sector.wrapping_add(u64::from(sectors));
            self.left = self.left.saturating_sub(sectors);
        }
        let Some(piece) = &mut self.dispatch else { return };
        piece.bytes += u64::from(sectors) << 9;
        piece.ended_ns = time_ns;
        self.dispatch_left = self.dispatch_left.saturating_sub(sectors);
        if self.dispatch_left == 0 && self.left > 0 {
            self.request.pieces.extend(self.dispatch.take());
            self.parted = true;
        }
    }

    /// The finished request, once all of it has completed.
    pub fn into_request(self) -> Request {
        let Open { mut request, dispatch, shares, .. } = self;
        request.origin = shares.first().map_or(Origin::Thread, |share| share.origin);
        request.pieces.extend(dispatch);
        let start_ns = request.pieces.iter().find_map(|piece| piece.hardware_start_ns);
        request.marks.0[Mark::HardwareStart as usize] = start_ns;
        let done_ns = request.pieces.last().and_then(|piece| piece.hardware_done_ns);
        request.marks.0[Mark::HardwareDone as usize] = done_ns;
        if request.pieces.len() == 1 {
            request.pieces.clear();
        }
        request
    }

    /// Whether the device must be flushed after its data; `None` without a flush sequence. In a
    /// sequence the block layer completes the request once more at the end, and executes the flush
    /// flags that it removes from the request.
    pub fn sequence(&self) -> Option<bool> {
        let bio_op = self.bio_op.filter(|_| self.request.bytes > 0)?;
        let postflush = bio_op.fua && !self.request.op.fua;
        (bio_op.preflush || postflush).then_some(postflush)
    }
}

/// The place at which to look up the request of `extent`. Flushes have no sector; passthrough
/// requests have 0, and at their end -1.
pub(in crate::follow) fn place(extent: &Extent) -> StartSector {
    let Extent { dev, sector, sectors, op, .. } = *extent;
    let passthrough = op.kind == OpKind::Other && (sectors, sector) == (0, 0);
    (dev, if op.kind == OpKind::Flush || passthrough { NOWHERE } else { sector })
}
