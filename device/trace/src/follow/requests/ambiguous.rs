// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the open request of an event, if only one is possible. `requests` and its submodules call
//! it.
//!
//! Once two requests are ambiguous, neither can be reported, and the state of both is unknown. A
//! third request in their ranges is ambiguous too. The ranges are free again when as many requests
//! have completed as were ambiguous.
//!
//! The completion of an ambiguous request may have been lost. Two facts prove it. An MMC command
//! (`mrq`) is part of its request's memory: if the same command has another sector, it belongs to
//! another request, so the memory was free. And a hardware queue has one flush in flight at a time.

use std::collections::{HashMap, HashSet};

use super::open::{CommandKey, Open, Side, Slot};
use super::ranges::Ranges;
use super::table::Table;
use crate::event::{Command, Dev, Event, Extent, MMC_MAJOR, Op, OpKind};
use crate::follow::sink::{Ambiguity, Sink};

/// The major number of loop devices.
const LOOP_MAJOR: u32 = 7;

const ALIKE: &str = "two requests queued or in flight at one sector cannot be told apart";

/// The open requests, with marks on the ambiguous ones.
#[derive(Debug, Default)]
pub(in crate::follow) struct OpenRequests {
    pub table: Table,
    ranges: Ranges,
    /// The requests that had each command when events were lost.
    commands: HashMap<CommandKey, Vec<Slot>>,
    /// The devices with `block_getrq`, where each request should have that event.
    pub allocating: HashSet<Dev>,
    /// The reason for a missing event: a loss, once there was one.
    pub absence: Ambiguity,
}

impl OpenRequests {
    /// A new request without earlier events.
    pub fn unseen(&self, extent: &Extent) -> Open {
        Open { ambiguity: Some(self.absence), ..Open::new(extent) }
    }

    /// The only request that begins at `extent`, fits and is not in flight; all if several do.
    pub fn one_waiting_at(&mut self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        self.one_of(self.table.waiting(extent, fits), extent)
    }

    /// The only request that a completion at `extent` can belong to; all if several. If each has a
    /// driver's command, the one whose command is done counts.
    pub fn one_done_at(&mut self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let mut slots = self.table.beginning(extent, fits);
        if slots.iter().all(|slot| self.table.all[*slot].command.is_some()) {
            let done_ns = |open: &Open| open.dispatch?.hardware_done_ns;
            slots = self.only(slots, |open| done_ns(open).is_some());
        }
        self.one_of(slots, extent)
    }

    /// The only one of several slots that satisfies `is_so`; all of them if there is no such one.
    pub fn only(&self, slots: Vec<Slot>, is_so: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let mut found = slots.iter().filter(|slot| is_so(&self.table.all[**slot]));
        match (found.next(), found.next()) {
            (Some(only), None) => vec![*only],
            _ => slots,
        }
    }

    /// The request adjacent to `extent`, on the given side, that this can be merged with. It must
    /// not be issued.
    pub fn one_beside(&mut self, extent: &Extent, side: Side) -> Option<Slot> {
        let end = extent.sector.wrapping_add(extent.sectors.into());
        let (place, sector) = match side {
            Side::Back => (extent.sector, extent.sector.wrapping_sub(1)),
            Side::Front => (end, end),
        };
        let fits = |open: &Open| !open.started && open.request.op.kind == extent.op.kind;
        let slots = self.table.at((side, (extent.dev, place)), fits);
        self.one_of(slots, &Extent { sector, sectors: 1, ..*extent }).first().copied()
    }

    /// The only one of `slots` to which the event at `extent` can belong. If several are possible,
    /// none of them can be reported.
    pub fn one_of(&mut self, mut slots: Vec<Slot>, extent: &Extent) -> Vec<Slot> {
        if slots.len() > 1 {
            // The operation of a request never changes, nor do its flags, except those of flushes.
            slots.retain(|slot| same_flags(&self.table.all[*slot].request.op, &extent.op));
        }
        self.mark_ambiguous(&slots, extent);
        if slots.len() > 1 {
            self.suspect_all(&slots);
        }
        slots
    }

    /// Marks the requests at a place as ambiguous if an ambiguous request may be there.
    pub fn mark_ambiguous(&mut self, slots: &[Slot], extent: &Extent) {
        if self.ranges.is_empty() || slots.is_empty() {
            return;
        }
        let mut found = None;
        for near in self.ranges.near(extent) {
            let open = &self.table.all[near];
            let range = self.ranges.get_mut(near).filter(|range| range.reaches(extent, open));
            let Some(range) = range else { continue };
            found = found.max(open.ambiguity);
            range.command = range.command.filter(|_| slots == [near]);
        }
        let Some(found) = found else { return };
        for slot in slots {
            self.suspect(*slot, found);
        }
    }

    /// Marks requests as indistinguishable. If events were lost while one of them was open, or if
    /// it began before the trace, that may be the reason.
    pub fn suspect_all(&mut self, slots: &[Slot]) {
        // The reason why a request is incomplete, as far as known now.
        let ambiguity = |slot: &Slot| {
            let open = &self.table.all[*slot];
            let unseen = open.has_no_beginning() && self.allocating.contains(&open.request.dev);
            open.ambiguity.or_else(|| unseen.then_some(self.absence))
        };
        let known = slots.iter().filter_map(ambiguity);
        let reason = known.fold(Ambiguity::Odd(ALIKE), Ord::max);
        for slot in slots {
            self.suspect(*slot, reason);
            if let Some(range) = self.ranges.get_mut(*slot) {
                range.command = None;
            }
        }
    }

    /// Events were lost. Open requests may have completed since.
    pub fn lose_sight(&mut self) {
        self.absence = Ambiguity::Loss;
        for slot in std::mem::take(&mut self.table.since_loss) {
            let Some(open) = self.table.all.get_mut(slot) else { continue };
            open.shares.clear();
            let command = open.command;
            let is_new = self.suspect(slot, Ambiguity::Loss);
            let range = self.ranges.get_mut(slot).filter(|_| is_new);
            if let Some((range, command)) = range.zip(command) {
                range.command = Some(command);
                self.commands.entry(command).or_default().push(slot);
            }
        }
    }

    /// An MMC command starts. If it belonged to an ambiguous request at another sector, that
    /// request has completed.
    pub fn forget_reused(&mut self, event: &Event, command: &Command, sink: &mut Sink) {
        let key = (command.driver, command.key);
        let Some(sector) = command.sector else { return };
        for slot in self.commands.remove(&key).unwrap_or_default() {
            let range = self.ranges.get_mut(slot).filter(|range| range.command == Some(key));
            match range.map(|range| range.sectors.contains(&sector)) {
                Some(true) => self.commands.entry(key).or_default().push(slot),
                Some(false) => self.forget(slot, event, sink),
                None => {}
            }
        }
    }

    /// A flush is issued. On a device with one queue, an earlier flush whose completion may have
    /// been lost has completed, or it is the same one, requeued unseen. Returns whether there was
    /// one.
    pub fn forget_flush(&mut self, event: &Event, extent: &Extent, sink: &mut Sink) -> bool {
        let one_queue = matches!(extent.dev.major, MMC_MAJOR | LOOP_MAJOR);
        if extent.op.kind != OpKind::Flush || !one_queue || self.absence != Ambiguity::Loss {
            return false;
        }
        let lost = |open: &Open| open.dispatch.is_some() && open.ambiguity == Some(Ambiguity::Loss);
        let slots = self.table.beginning(extent, lost);
        slots.iter().for_each(|slot| self.forget(*slot, event, sink));
        !slots.is_empty()
    }

    /// Removes a request that has completed unseen.
    fn forget(&mut self, slot: Slot, event: &Event, sink: &mut Sink) {
        let open = self.take(slot);
        sink.results.count_ambiguous(Ambiguity::Loss, &open.as_seen(), event.time_ns);
        open.shares.iter().for_each(|share| sink.drop_share(share));
    }

    /// Marks a request as impossible to report, and also those that become ambiguous with it.
    /// Returns whether it was not marked before.
    pub fn suspect(&mut self, slot: Slot, ambiguity: Ambiguity) -> bool {
        let open = &mut self.table.all[slot];
        if open.ambiguity.is_none() || ambiguity == Ambiguity::Loss {
            open.ambiguity = Some(ambiguity);
        }
        self.ranges.insert(slot, open)
    }

    /// Changes a request, perhaps with its sectors.
    pub fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Open)) {
        self.table.change(slot, change);
        self.ranges.note_change(slot, &self.table.all[slot]);
    }

    /// Removes a request that has completed or was merged into another.
    pub fn take(&mut self, slot: Slot) -> Open {
        self.ranges.remove(slot);
        self.table.remove(slot)
    }

    /// The request with the nearest size. Among several it only keeps the table consistent, because
    /// none of them is reported.
    pub fn closest(&self, slots: &[Slot], sectors: u32) -> Option<Slot> {
        let over = |slot: &&Slot| self.table.all[**slot].left.abs_diff(sectors);
        slots.iter().min_by_key(over).copied()
    }
}

/// Whether a request that was queued as `queued` can have the flags `shown` later. The flush
/// machinery removes flush flags, and makes the rest synchronous.
fn same_flags(queued: &Op, shown: &Op) -> bool {
    let sequenced = queued.preflush || queued.fua;
    queued.kind == shown.kind
        && (queued.meta, queued.ahead) == (shown.meta, shown.ahead)
        && (queued.sync == shown.sync || sequenced)
        && (queued.fua == shown.fua || sequenced)
}
