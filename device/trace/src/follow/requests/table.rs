// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of open requests, which finds them by sector. `ambiguous` uses it.
//!
//! Block events name a request by device and sector alone, and a request can move: a merge before
//! it and a completed piece both change its first sector. The table has the present first sector of
//! each request. While bios may still be merged at its back, the table also has its end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use slab::Slab;

use super::open::{Open, Side, Slot, place};
use crate::event::Extent;
use crate::follow::bios::StartSector;

#[derive(Debug, Default)]
pub(in crate::follow) struct Table {
    /// The open requests. Only [`Table::change`] changes their sectors, for `ambiguous`.
    pub all: Slab<Open>,
    by_side: BTreeMap<(Side, StartSector), Vec<Slot>>,
}

impl Table {
    pub fn insert(&mut self, open: Open) -> Slot {
        let number = self.all.insert(open);
        self.enter(number);
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

    /// The fitting requests with this side there. At the back, only those that can still be merged
    /// with.
    pub fn at(&self, side: (Side, StartSector), fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let there = self.by_side.get(&side).into_iter().flatten().copied();
        there.filter(|number| fits(&self.all[*number])).collect()
    }

    /// The fitting requests with the same operation that lie within `extent`.
    pub fn within(&self, extent: &Extent, fits: impl Fn(&Open) -> bool) -> Vec<Slot> {
        let (dev, begin) = place(extent);
        let end = begin.saturating_add(u64::from(extent.sectors));
        let there = self.by_side.range((Side::Front, (dev, begin))..(Side::Front, (dev, end)));
        let is_within = |slot: &Slot| {
            let open = &self.all[*slot];
            let same = open.request.op.kind == extent.op.kind && fits(open);
            same && open.sector.saturating_add(u64::from(open.left)) <= end
        };
        there.flat_map(|(_, slots)| slots).copied().filter(is_within).collect()
    }

    fn enter(&mut self, number: Slot) {
        for side in self.all[number].sides() {
            self.by_side.entry(side).or_default().push(number);
        }
    }

    fn leave(&mut self, number: Slot) {
        for side in self.all[number].sides() {
            let Entry::Occupied(mut there) = self.by_side.entry(side) else { continue };
            there.get_mut().retain(|other| *other != number);
            if there.get().is_empty() {
                there.remove();
            }
        }
    }
}
