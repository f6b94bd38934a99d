// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios, from `block_bio_queue` to a request: one function per event, and what becomes of them.

use super::super::event::{Dev, Event, Extent, OpKind};
use super::Follower;
use super::open::{RequestNumber, add_new};
use super::tasks::Share;
use super::threads::{Bio, Thread};

impl Follower {
    /// A bio reaches the block layer. A part of a split bio and a bio that went through a stacked device may be
    /// queued again; then they are known.
    pub(super) fn queue(&mut self, event: &Event, extent: &Extent) {
        let thread = self.threads.entry(event.pid).or_default();
        if let Some(at) = thread.find(extent) {
            if thread.pending[at].carried {
                return;
            }
            // It was queued at the same place and led to nothing: refused, or merged without an event.
            if self.seen.get_request {
                let stale = thread.pending.remove(at);
                self.drop_bio(&stale);
            }
        }
        let bio = self.new_bio(event, extent, Some(event.time_ns));
        self.hold_bio(bio);
    }

    /// The bio is remapped. Of a partition, and of a thread that serves a stacked device: before it is queued.
    pub(super) fn remap(&mut self, event: &Event, to: &Extent, from: (Dev, u64)) {
        let thread = self.threads.entry(event.pid).or_default();
        let above = |bio: &Bio| bio.covers(from.0, from.1);
        // A partition below a stacked device: known by the sector within the partition so far.
        let within = |bio: &Bio| bio.carried && (bio.dev, bio.sector) == (to.dev, from.1);
        let Some(at) = thread.pending.iter().rposition(above) else {
            if let Some((submitter, at)) = self.only_one_at(from) {
                return self.carry_down((submitter, at), event.pid, to, from.0);
            }
            let thread = self.threads.entry(event.pid).or_default();
            match thread.pending.iter_mut().rev().find(|bio| within(bio)) {
                Some(bio) => {
                    bio.sector = to.sector;
                    add_new(&mut bio.through, &[from.0]);
                }
                None => {
                    let before = thread.remapped.take();
                    let before = before.filter(|(place, _)| *place == (to.dev, from.1));
                    let mut through = before.map_or_else(Vec::new, |(_, through)| through);
                    add_new(&mut through, &[from.0]);
                    thread.remapped = Some(((to.dev, to.sector), through));
                }
            }
            return;
        };
        self.carry_down((event.pid, at), event.pid, to, from.0);
    }

    /// The bio at this place, if exactly one is pending there: a thread of the stacked device's own goes on with it
    /// (dm-crypt encrypts what is written in one).
    fn only_one_at(&self, (dev, sector): (Dev, u64)) -> Option<(u32, usize)> {
        let of_thread = |(pid, thread): (&u32, &Thread)| {
            let at = thread.pending.iter().rposition(|bio| bio.covers(dev, sector) && !bio.stacked);
            at.map(|at| (*pid, at))
        };
        let mut found = self.threads.iter().filter_map(of_thread);
        found.next().filter(|_| found.next().is_none())
    }

    /// The pending bio goes on to `to`, in the thread `server`.
    fn carry_down(&mut self, (pid, at): (u32, usize), server: u32, to: &Extent, above: Dev) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let upper = &mut thread.pending[at];
        let mut bio = upper.clone();
        let was_stacked = std::mem::replace(&mut upper.stacked, true);
        let task = upper.share.task;
        bio.stacked = false;
        bio.carried = true;
        add_new(&mut bio.through, &[above]);
        (bio.dev, bio.sector, bio.sectors, bio.op) = (to.dev, to.sector, to.sectors, to.op);
        self.hold_bio_in(server, bio);
        // From now on only those below count.
        if !was_stacked {
            self.tasks.release(task, &mut self.results);
        }
    }

    /// The front part continues at once; the rest is not queued again.
    pub(super) fn split(&mut self, event: &Event, extent: &Extent, new_sector: u64) {
        let thread = self.threads.entry(event.pid).or_default();
        let Some(at) = thread.find(extent) else { return };
        let front = &mut thread.pending[at];
        // The event has the low 32 bits of the new sector.
        let sectors = (new_sector as u32).wrapping_sub(front.sector as u32);
        if sectors == 0 || sectors >= front.sectors {
            return;
        }
        let mut rest = front.clone();
        rest.sector += u64::from(sectors);
        rest.sectors -= sectors;
        front.sectors = sectors;
        (rest.cut, rest.carried) = (true, true);
        front.cut = true;
        self.hold_bio(rest);
    }

    /// A bio of this thread, as far as one event shows.
    fn new_bio(&mut self, event: &Event, extent: &Extent, queued_ns: Option<u64>) -> Bio {
        let share = self.share_of(event, extent);
        let remapped = self.threads.get_mut(&event.pid).and_then(|thread| thread.remapped.take());
        let through = remapped.filter(|(place, _)| *place == (extent.dev, extent.sector));
        Bio {
            dev: extent.dev,
            sector: extent.sector,
            sectors: extent.sectors,
            op: extent.op,
            priority: extent.priority,
            queued_ns,
            pid: event.pid,
            comm: event.comm,
            cut: false,
            carried: false,
            stacked: false,
            through: through.map_or_else(Vec::new, |(_, through)| through),
            share,
        }
    }

    /// It waits for a request, and its task for it.
    fn hold_bio(&mut self, bio: Bio) {
        self.hold_bio_in(bio.pid, bio);
    }

    /// The same, where another thread will ask for the request.
    fn hold_bio_in(&mut self, pid: u32, bio: Bio) {
        self.tasks.hold(bio.share.task);
        let thread = self.threads.entry(pid).or_default();
        if let Some(oldest) = thread.queue(bio) {
            self.drop_bio(&oldest);
        }
    }

    /// The bio that `extent` is about, which this thread queued just before; or a new one, if that was not seen.
    pub(super) fn take_bio(&mut self, event: &Event, extent: &Extent) -> Bio {
        let thread = self.threads.entry(event.pid).or_default();
        if let Some(at) = thread.find(extent) {
            return self.take_front(event.pid, at, extent);
        }
        let bio = self.new_bio(event, extent, None);
        self.tasks.hold(bio.share.task);
        bio
    }

    /// Takes a pending bio. One longer than `extent` was split without an event, and its rest stays.
    fn take_front(&mut self, pid: u32, at: usize, extent: &Extent) -> Bio {
        let thread = self.threads.entry(pid).or_default();
        let mut bio = thread.pending.remove(at);
        if bio.sectors > extent.sectors && extent.sectors > 0 {
            let mut rest = bio.clone();
            rest.sector += u64::from(extent.sectors);
            rest.sectors -= extent.sectors;
            (rest.cut, rest.carried, bio.cut) = (true, true, true);
            bio.sectors = extent.sectors;
            self.hold_bio(rest);
        }
        bio
    }

    /// Without `block_getrq`, a request begins with its insertion or issue: with the bio queued there, if it is the
    /// only one.
    pub(super) fn unattached(&mut self, extent: &Extent) -> Option<Bio> {
        if self.seen.get_request || extent.op.kind == OpKind::Flush {
            return None;
        }
        let mut found = None;
        for (pid, thread) in &self.threads {
            for (at, bio) in thread.pending.iter().enumerate() {
                if bio.is_at(extent) && !bio.stacked && found.replace((*pid, at)).is_some() {
                    return None;
                }
            }
        }
        found.map(|(pid, at)| self.take_front(pid, at, extent))
    }

    /// Discards are merged without an event where a device takes several ranges in one command. If all that
    /// wait for this device account exactly for the request's growth, they are in it.
    pub(super) fn join_discards(&mut self, slot: RequestNumber, extent: &Extent) {
        let Some(open) = self.table.get(slot).filter(|_| extent.op.kind == OpKind::Discard) else {
            return;
        };
        let grown = extent.sectors.saturating_sub(open.left);
        let waits =
            |bio: &Bio| bio.dev == extent.dev && bio.op.kind == OpKind::Discard && !bio.stacked;
        let all = self.threads.values().flat_map(|thread| &thread.pending);
        let sum: u64 = all.filter(|bio| waits(bio)).map(|bio| u64::from(bio.sectors)).sum();
        if grown == 0 || sum != u64::from(grown) {
            return;
        }
        let mut joined: Vec<Bio> = Vec::new();
        for thread in self.threads.values_mut() {
            let pending = std::mem::take(&mut thread.pending);
            let (discards, others) = pending.into_iter().partition(waits);
            thread.pending = others;
            joined.extend::<Vec<Bio>>(discards);
        }
        joined.sort_by_key(|bio| bio.queued_ns);
        if let Some(open) = self.table.get_mut(slot) {
            open.merged_queued_ns.extend(joined.iter().filter_map(|bio| bio.queued_ns));
            open.shares.extend(joined.iter().map(|bio| bio.share));
            joined.iter().for_each(|bio| add_new(&mut open.through, &bio.through));
        }
    }

    /// It led to no request that is known, so its task is not known in full.
    pub(super) fn drop_bio(&mut self, bio: &Bio) {
        if !bio.stacked {
            self.drop_share(&bio.share);
        }
    }

    /// Its request is not known.
    pub(super) fn drop_share(&mut self, share: &Share) {
        self.tasks.spoil(share.task);
        self.tasks.release(share.task, &mut self.results);
    }

    /// It is of a device that is not followed.
    pub(super) fn pass_over(&mut self, bio: &Bio) {
        self.tasks.release(bio.share.task, &mut self.results);
    }

    /// The thread has submitted all that it queued: what is left led to no request.
    pub(super) fn drop_pending(&mut self, pid: u32) {
        if !self.seen.get_request {
            return;
        }
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        for bio in std::mem::take(&mut thread.pending) {
            self.drop_bio(&bio);
        }
    }
}
