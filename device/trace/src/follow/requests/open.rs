// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request between a tag and its completion: what is known of it, and how each event changes that.

use crate::event::{Driver, Event, Extent, Op, OpKind};
use crate::follow::bios::{Bio, StartSector, add_new};
use crate::follow::sink::{Ambiguity, Share, Sink};
use crate::io::{Mark, Origin, Piece, Request};

/// The place of requests without a sector.
pub(in crate::follow) const NOWHERE: u64 = u64::MAX;

/// Where the table has an open request; reused once that has completed.
pub(in crate::follow) type Slot = usize;

/// A command in flight.
pub(in crate::follow) type CommandKey = (Driver, u64);

/// An end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::follow) enum Side {
    Front,
    Back,
}

#[derive(Clone, Debug, Default)]
pub(in crate::follow) struct Open {
    /// Its known values; sector and bytes once it was issued.
    pub request: Request,
    /// Where it begins now.
    pub sector: u64,
    /// Sectors that have not completed.
    pub left: u32,
    /// The operation of the bio, with the flags that the flush machinery removes; `None` if no
    /// event showed the bio.
    pub bio_op: Option<Op>,
    /// A part has completed; the rest waits for its requeue.
    pub parted: bool,
    /// Issued at least once; can no longer be merged.
    pub started: bool,
    /// While in flight.
    pub dispatch: Option<Piece>,
    /// Sectors of the dispatch that have not completed.
    pub dispatch_left: u32,
    /// The driver's command for it, while in flight.
    pub command: Option<CommandKey>,
    /// One per bio, the first bio's first.
    pub shares: Vec<Share>,
    /// A flush must precede it.
    pub awaits_flush: bool,
    /// Flushes that began after it and completed before its issue, while it waits for one.
    pub flushes: Vec<usize>,
    pub ambiguity: Option<Ambiguity>,
}

impl Open {
    /// Nothing is known but what `extent` says.
    pub fn new(extent: &Extent) -> Open {
        let Extent { dev, op, priority, .. } = *extent;
        let request = Request { dev, op, priority, ..Request::default() };
        let (_, sector) = place(extent);
        Open { request, sector, left: extent.sectors, ..Open::default() }
    }

    /// Records an ambiguity; the first one stays, but loss is the reason wherever it plays a part.
    pub fn suspect(&mut self, ambiguity: Ambiguity) {
        if self.ambiguity.is_none() || ambiguity == Ambiguity::Loss {
            self.ambiguity = Some(ambiguity);
        }
    }

    /// Where it begins now, and where it ends if bios can still be appended there.
    pub fn sides(&self) -> impl Iterator<Item = (Side, StartSector)> + use<> {
        let (dev, end) = (self.request.dev, self.sector.wrapping_add(u64::from(self.left)));
        let back = (!self.started && self.left > 0).then_some((Side::Back, (dev, end)));
        [(Side::Front, (dev, self.sector))].into_iter().chain(back)
    }

    /// Where it began when it was first issued; until then, where it begins now.
    pub fn first_sector(&self) -> u64 {
        if self.started { self.request.sector } else { self.sector }
    }

    /// The request as seen, at its first sector.
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

    /// A further bio, or another request with all its bios, is merged into it.
    pub fn take_in(&mut self, more: Request, shares: impl IntoIterator<Item = Share>) {
        self.request.merged_queued_ns.extend(more.marks.get(Mark::Queued));
        self.request.merged_queued_ns.extend(more.merged_queued_ns);
        add_new(&mut self.request.through, &more.through);
        self.shares.extend(shares);
    }

    /// It waits for no flush any longer. It is known which one served it only if one can have.
    pub fn settle_flush(&mut self, sink: &mut Sink) {
        if std::mem::take(&mut self.awaits_flush) && self.flushes.len() != 1 {
            self.flushes.clear();
            self.shares.iter().for_each(|share| sink.invalidate(share.task));
        }
    }

    /// Its bio was not seen, and it is of a kind that has one.
    pub fn has_no_beginning(&self) -> bool {
        self.bio_op.is_none() && self.request.op.kind != OpKind::Flush && self.sector != NOWHERE
    }

    /// It, or a piece of it, was issued.
    pub fn issue(&mut self, event: &Event, extent: &Extent) {
        self.parted = false;
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

    /// The driver requeued it, or the rest of it was requeued after a piece.
    pub fn requeue(&mut self, time_ns: u64) {
        match self.dispatch.take() {
            // Nothing of this dispatch has completed.
            Some(piece) if piece.bytes == 0 => {
                self.request.requeues += 1;
                self.request.pieces.push(Piece { ended_ns: time_ns, ..piece });
            }
            Some(piece) => self.request.pieces.push(piece),
            None if self.parted => {}
            // Busy before it was begun.
            None => self.request.requeues += 1,
        }
        self.parted = false;
    }

    /// So much of it completed.
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

    /// All of it has completed.
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

    /// Its data is part of a flush sequence: the block layer completes it once more at the end of that, and handles the
    /// flush flags that it takes off the request. Returns whether the device is to be flushed after it.
    pub fn sequence(&self) -> Option<bool> {
        let bio_op = self.bio_op.filter(|_| self.request.bytes > 0)?;
        let postflush = bio_op.fua && !self.request.op.fua;
        (bio_op.preflush || postflush).then_some(postflush)
    }

    /// It was there when a flush was issued that may be for it.
    pub fn came_before(&self, issued_ns: u64) -> bool {
        self.request.marks.get(Mark::GotRequest).is_some_and(|got_ns| got_ns <= issued_ns)
    }
}

/// Where to look for the request of `extent`. Flushes have no sector; passthrough requests show 0, and at their
/// end -1.
pub(in crate::follow) fn place(extent: &Extent) -> StartSector {
    let passthrough = extent.op.kind == OpKind::Other && extent.sectors == 0 && extent.sector == 0;
    let sector =
        if extent.op.kind == OpKind::Flush || passthrough { NOWHERE } else { extent.sector };
    (extent.dev, sector)
}
