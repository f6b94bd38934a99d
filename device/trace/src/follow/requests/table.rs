// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of open requests, which finds them by sector. `ambiguous` uses it.
//!
//! Block events name a request by device and sector alone, and a request can move: a merge before
//! it and a completed piece both change its first sector. The table has the present first sector of
//! each request. While bios may still be merged at its back, the table also has its end.

use std::collections::BTreeSet;

use slab::Slab;

use super::open::{Open, Side, Slot, place};
use crate::event::Extent;
use crate::follow::bios::StartSector;

/// Whether a request is in flight, one of its sides, and where that is.
type Key = (bool, Side, StartSector, Slot);

#[derive(Debug, Default)]
pub(in crate::follow) struct Table {
    /// The open requests. Only [`Table::change`] changes their sectors and dispatch, for
    /// `ambiguous`.
    pub all: Slab<Open>,
    /// The requests that were added since the last loss. Some of them have completed.
    pub since_loss: Vec<Slot>,
    /// Those in flight are apart: without events of completions, there are ever more.
    by_side: BTreeSet<Key>,
}

impl Table {
    pub fn insert(&mut self, open: Open) -> Slot {
        let number = self.all.insert(open);
        self.enter(number);
        self.since_loss.push(number);
        number
    }

    pub fn remove(&mut self, number: Slot) -> Open {
        self.leave(number);
        self.all.remove(number)
    }

    /// Changes a request, perhaps with its sectors.
    pub fn change(&mut self, number: Slot, change: impl FnOnce(&mut Open)) {
        self.leave(number);
        change(&mut self.all[number]);
        self.enter(number);
    }

    /// The requests that begin at `extent`, have the same operation, and fit.
    pub fn beginning(&self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let same = |open: &Open| open.request.op.kind == extent.op.kind && fits(open);
        self.at((Side::Front, place(extent)), same)
    }

    /// The same of those that are not in flight.
    pub fn waiting(&self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let same = |open: &Open| open.request.op.kind == extent.op.kind && fits(open);
        let there = self.there(false, (Side::Front, place(extent)));
        there.filter(|number| same(&self.all[*number])).collect()
    }

    /// The fitting requests with this side there. At the back, only those that can still be merged
    /// with.
    pub fn at(&self, side: (Side, StartSector), fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let there = self.there(false, side).chain(self.there(true, side));
        there.filter(|number| fits(&self.all[*number])).collect()
    }

    /// The fitting requests with the same operation that lie within `extent` and are not in flight.
    pub fn within(&self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let (dev, begin) = place(extent);
        let end = begin.saturating_add(u64::from(extent.sectors));
        let key = |sector| (false, Side::Front, (dev, sector), 0);
        let is_within = |slot: &Slot| {
            let open = &self.all[*slot];
            let same = open.request.op.kind == extent.op.kind && fits(open);
            same && open.sector.saturating_add(u64::from(open.left)) <= end
        };
        self.by_side.range(key(begin)..key(end)).map(|key| key.3).filter(is_within).collect()
    }

    fn there(
        &self,
        in_flight: bool,
        (side, at): (Side, StartSector),
    ) -> impl Iterator<Item = Slot> {
        let there = (in_flight, side, at, 0)..=(in_flight, side, at, Slot::MAX);
        self.by_side.range(there).map(|key| key.3)
    }

    /// The key of its present beginning, and that of its end if bios can still be appended.
    fn keys(&self, number: Slot) -> impl Iterator<Item = Key> + use<> {
        let Open { request, sector, left, started, dispatch, .. } = &self.all[number];
        let (dev, in_flight) = (request.dev, dispatch.is_some());
        let key = move |side, sector| (in_flight, side, (dev, sector), number);
        let end = sector.wrapping_add(u64::from(*left));
        let back = (!started && *left > 0).then(|| key(Side::Back, end));
        [key(Side::Front, *sector)].into_iter().chain(back)
    }

    fn enter(&mut self, number: Slot) {
        self.by_side.extend(self.keys(number));
    }

    fn leave(&mut self, number: Slot) {
        self.keys(number).for_each(|key| _ = self.by_side.remove(&key));
    }
}
