// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a bio from `block_bio_queue` to its request. It has one function per event that changes
//! a bio; `follow` calls them.

use std::collections::HashMap;

use super::sink::{Share, Sink};
use crate::event::{Dev, Event, Extent, Kind, OpKind};
use crate::io::{Mark, Request};

/// A thread's bios wait for a request only while the thread submits them. With more bios than this,
/// the oldest are stale.
const PENDING_MAX: usize = 1_024;

/// Device and first sector. Flushes and passthrough requests have no sector.
pub(in crate::follow) type StartSector = (Dev, u64);

/// A queued bio without a request.
#[derive(Clone, Debug)]
pub(super) struct Bio {
    pub extent: Extent,
    /// The known part of its request: the thread that queued it, the time if an event showed it,
    /// whether it is a part of a larger bio, and the devices above this one through which it came.
    pub request: Request,
    /// Whether it came from a device above this one.
    carried: bool,
    /// Whether it may be queued once more: for the device below. The rest of a split bio is not.
    queued_next: bool,
    /// Whether it was remapped to the devices below.
    stacked: bool,
    pub share: Share,
}

impl Bio {
    fn covers(&self, (dev, sector): StartSector) -> bool {
        self.extent.dev == dev && (self.extent.sector..end(&self.extent)).contains(&sector)
    }

    /// Whether it will get a request at that place.
    fn is_at(&self, extent: &Extent) -> bool {
        let place = |of: &Extent| (of.dev, of.sector, of.op.kind);
        place(&self.extent) == place(extent) && !self.stacked
    }

    /// Whether a part of it can be in a request at that place.
    fn overlaps(&self, extent: &Extent) -> bool {
        let Extent { dev, op, sector, .. } = self.extent;
        let same = !self.stacked && (dev, op.kind) == (extent.dev, extent.op.kind);
        same && sector < end(extent) && extent.sector < end(&self.extent)
    }

    /// Shortens the bio, and returns the rest.
    fn cut_off(&mut self, sectors: u32) -> Bio {
        let mut rest = self.clone();
        rest.extent.sector = rest.extent.sector.saturating_add(u64::from(sectors));
        rest.extent.sectors -= sectors;
        rest.request.cut_from_bio = true;
        self.extent.sectors = sectors;
        self.request.cut_from_bio = true;
        rest
    }
}

/// All bios without a request, by the thread that will ask for it.
#[derive(Debug, Default)]
pub(super) struct Bios {
    /// The pending bios of each thread that has any, in the order of queueing. All of them are
    /// searched, so threads without one are not kept.
    pending: HashMap<u32, Vec<Bio>>,
    /// For each thread: the place to which the bio of a partition or of a stacked device is
    /// remapped, and the devices that it passed. The next event queues it there.
    remapped: HashMap<u32, (StartSector, Vec<Dev>)>,
}

/// A pending bio: its thread, and the index among that thread's.
type Place = (u32, usize);

impl Bios {
    /// The last bio of this thread queued there; a thread submits one at a time.
    fn find(&self, pid: u32, extent: &Extent) -> Option<Place> {
        let at = self.pending.get(&pid)?.iter().rposition(|bio| bio.is_at(extent))?;
        Some((pid, at))
    }

    fn at(&mut self, (pid, at): Place) -> &mut Bio {
        &mut self.pending.entry(pid).or_default()[at]
    }

    fn remove(&mut self, (pid, at): Place) -> Bio {
        let pending = self.pending.entry(pid).or_default();
        let bio = pending.remove(at);
        if pending.is_empty() {
            self.pending.remove(&pid);
        }
        bio
    }

    /// The devices that the bio passed that this thread queues there next.
    fn remapped_to(&mut self, pid: u32, place: StartSector) -> Vec<Dev> {
        let remapped = self.remapped.remove(&pid).filter(|(to, _)| *to == place);
        remapped.map(|(_, through)| through).unwrap_or_default()
    }

    /// A bio reaches the block layer. Returns whether it is new. A bio that passed a stacked device
    /// is queued again; it is known.
    pub fn is_new(&mut self, event: &Event, extent: &Extent, sink: &mut Sink) -> bool {
        let Some(known) = self.find(event.pid, extent) else { return true };
        if std::mem::take(&mut self.at(known).queued_next) {
            return false;
        }
        // A bio was queued at the same place and led to nothing: it was rejected, or merged without
        // an event.
        if sink.seen.has(Kind::GetRequest) {
            sink.drop_share(&self.remove(known).share);
        }
        true
    }

    /// A new bio of this thread, with the facts in one event.
    pub fn bio(&mut self, event: &Event, extent: &Extent, share: Share) -> Bio {
        let through = self.remapped_to(event.pid, (extent.dev, extent.sector));
        let (pid, comm) = (event.pid, event.comm);
        let request = Request { pid, comm, through, ..Request::default() };
        let (carried, queued_next, stacked) = (false, false, false);
        Bio { extent: *extent, request, carried, queued_next, stacked, share }
    }

    /// Keeps a bio until thread `pid` asks for its request, and keeps its task open.
    pub fn hold(&mut self, pid: u32, bio: Bio, sink: &mut Sink) {
        sink.hold(bio.share.task);
        let pending = self.pending.entry(pid).or_default();
        pending.push(bio);
        if pending.len() > PENDING_MAX {
            drop_bio(&pending.remove(0), sink);
        }
    }

    /// Remaps a bio. For a partition, and in a thread that serves a stacked device, this event
    /// comes before the bio is queued.
    pub fn remap(&mut self, server: u32, to: &Extent, from: StartSector, sink: &mut Sink) {
        let own = self.pending.get(&server).map_or(&[][..], Vec::as_slice);
        let above = own.iter().rposition(|bio| bio.covers(from)).map(|at| (server, at));
        // A thread of the stacked device continues with the bio: dm-crypt encrypts writes in such a
        // thread.
        let of_any = || self.only_one(|bio| bio.covers(from) && !bio.stacked);
        if let Some(above) = above.or_else(of_any) {
            return self.carry(above, server, to, sink);
        }
        // A partition below a stacked device: so far the bio has the sector within the partition.
        let within =
            |bio: &Bio| bio.carried && (bio.extent.dev, bio.extent.sector) == (to.dev, from.1);
        if let Some(at) = own.iter().rposition(within) {
            let bio = self.at((server, at));
            bio.extent.sector = to.sector;
            return add_new(&mut bio.request.through, &[from.0]);
        }
        let mut through = self.remapped_to(server, (to.dev, from.1));
        add_new(&mut through, &[from.0]);
        self.remapped.insert(server, ((to.dev, to.sector), through));
    }

    /// The pending bio of any thread that fits, if exactly one fits.
    fn only_one(&self, fits: impl Fn(&Bio) -> bool) -> Option<Place> {
        let found = self.pending.iter().flat_map(|(pid, pending)| {
            let pending = pending.iter().enumerate().filter(|(_, bio)| fits(bio));
            pending.map(|(at, _)| (*pid, at))
        });
        let mut first_two = found.take(2);
        first_two.next().filter(|_| first_two.next().is_none())
    }

    /// Moves the pending bio `above` to `to`, in the thread `server`.
    fn carry(&mut self, above: Place, server: u32, to: &Extent, sink: &mut Sink) {
        let upper = self.at(above);
        let mut bio = upper.clone();
        let was_stacked = std::mem::replace(&mut upper.stacked, true);
        (bio.stacked, bio.carried, bio.queued_next) = (false, true, true);
        add_new(&mut bio.request.through, &[bio.extent.dev]);
        bio.extent = Extent { priority: bio.extent.priority, ..*to };
        let task = bio.share.task;
        self.hold(server, bio, sink);
        // From now on only the devices below count.
        if !was_stacked {
            sink.release(task);
        }
    }

    /// Splits a bio. The front part continues at once; the rest is not queued again.
    pub fn split(&mut self, event: &Event, extent: &Extent, new_sector: u64, sink: &mut Sink) {
        let Some(front) = self.find(event.pid, extent) else { return };
        let front = self.at(front);
        // The event has only the low 32 bits of the new sector.
        let sectors = (new_sector as u32).wrapping_sub(front.extent.sector as u32);
        if sectors > 0 && sectors < front.extent.sectors {
            let rest = front.cut_off(sectors);
            self.hold(rest.request.pid, rest, sink);
        }
    }

    /// Takes the bio at `extent`, which this thread queued just before.
    pub fn take(&mut self, pid: u32, extent: &Extent, sink: &mut Sink) -> Option<Bio> {
        let found = self.find(pid, extent)?;
        Some(self.take_front(found, extent, sink))
    }

    /// Takes a pending bio. If it is longer than `extent`, it was split without an event, and the
    /// rest stays.
    fn take_front(&mut self, place: Place, extent: &Extent, sink: &mut Sink) -> Bio {
        let mut bio = self.remove(place);
        if bio.extent.sectors > extent.sectors && extent.sectors > 0 {
            let rest = bio.cut_off(extent.sectors);
            self.hold(rest.request.pid, rest, sink);
        }
        bio
    }

    /// Takes the bio, or its part, with which the request at `extent` begins, if only one can be it.
    /// Without `block_getrq`, a request begins with its insertion or issue.
    pub fn take_only(&mut self, extent: &Extent, sink: &mut Sink) -> Option<Bio> {
        if sink.seen.has(Kind::GetRequest) || extent.op.kind == OpKind::Flush {
            return None;
        }
        // Its sectors are those of several ranges.
        if extent.op.kind == OpKind::Discard {
            let only = self.only_one(|bio| bio.is_at(extent))?;
            return Some(self.take_front(only, extent, sink));
        }
        let begins = |bio: &Bio| bio.overlaps(extent) && bio.extent.sector <= extent.sector;
        let Some(mut only) = self.only_one(begins) else {
            self.drop_overlapping(extent, sink);
            return None;
        };
        let bio = self.at(only);
        let before = (extent.sector - bio.extent.sector) as u32;
        if before > 0 {
            // Bios are split without an event, and issued in any order. The front part stays.
            let rest = bio.cut_off(before);
            self.hold(only.0, rest, sink);
            only.1 = self.pending[&only.0].len() - 1;
        }
        let bio = self.take_front(only, extent, sink);
        if end(&bio.extent) < end(extent) {
            self.drop_overlapping(extent, sink);
        }
        Some(bio)
    }

    /// Drops the bios that may be merged into a request without an event: nothing else is left of
    /// them.
    fn drop_overlapping(&mut self, extent: &Extent, sink: &mut Sink) {
        let merged = self.take_all(|bio| bio.overlaps(extent));
        merged.iter().for_each(|bio| drop_bio(bio, sink));
    }

    /// Takes all pending bios that fit, oldest first.
    fn take_all(&mut self, fits: impl Fn(&Bio) -> bool) -> Vec<Bio> {
        let mut taken = Vec::new();
        self.pending.retain(|_, pending| {
            if pending.iter().any(&fits) {
                let (fitting, others) = std::mem::take(pending).into_iter().partition(&fits);
                taken.extend::<Vec<Bio>>(fitting);
                *pending = others;
            }
            !pending.is_empty()
        });
        taken.sort_by_key(|bio| bio.request.marks.get(Mark::Queued));
        taken
    }

    /// Takes all pending bios that fit, oldest first, if their total is `sectors`.
    fn take_exactly(&mut self, sectors: u32, fits: impl Fn(&Bio) -> bool) -> Vec<Bio> {
        let waiting = self.pending.values().flatten().filter(|bio| fits(bio));
        let sum: u64 = waiting.map(|bio| u64::from(bio.extent.sectors)).sum();
        if sum == u64::from(sectors) { self.take_all(fits) } else { Vec::new() }
    }

    /// Takes all discards for this device, oldest first, if their total is `sectors`.
    pub fn take_discards(&mut self, dev: Dev, sectors: u32) -> Vec<Bio> {
        self.take_exactly(sectors, |bio| {
            let Extent { dev: of, op, .. } = bio.extent;
            of == dev && op.kind == OpKind::Discard && !bio.stacked
        })
    }

    /// Takes all bios that are a part of `extent`, oldest first, if their total is `sectors`.
    pub fn take_parts(&mut self, extent: &Extent, sectors: u32) -> Vec<Bio> {
        self.take_exactly(sectors, |bio| {
            let (begin, end_of_bio) = (bio.extent.sector, end(&bio.extent));
            bio.overlaps(extent) && extent.sector <= begin && end_of_bio <= end(extent)
        })
    }

    /// Drops the bios of a thread that has submitted all of its bios: they led to no request. If
    /// allocations have no events, only those are known to be over that went to a device below.
    pub fn drop_pending(&mut self, pid: u32, sink: &mut Sink) {
        let (over, kept): (Vec<Bio>, Vec<Bio>) = match self.pending.remove(&pid) {
            Some(pending) if sink.seen.has(Kind::GetRequest) => (pending, Vec::new()),
            pending => pending.into_iter().flatten().partition(|bio| bio.stacked),
        };
        over.iter().for_each(|bio| drop_bio(bio, sink));
        if !kept.is_empty() {
            self.pending.insert(pid, kept);
        }
    }
}

fn end(extent: &Extent) -> u64 {
    extent.sector.saturating_add(u64::from(extent.sectors.max(1)))
}

/// Drops a bio without a known request, so its task is incomplete.
fn drop_bio(bio: &Bio, sink: &mut Sink) {
    if !bio.stacked {
        sink.drop_share(&bio.share);
    }
}

/// Adds the devices that are not in the list yet.
pub(in crate::follow) fn add_new(devs: &mut Vec<Dev>, more: &[Dev]) {
    let known = devs.clone();
    devs.extend(more.iter().filter(|dev| !known.contains(dev)));
}
